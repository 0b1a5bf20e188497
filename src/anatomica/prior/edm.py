"""EDM preconditioning (Karras et al. 2022, Table 1): a network becomes a denoiser D(z_sigma; sigma).

Karras' c_skip and c_out are those of data that vary alike in all directions. With the Gaussian of the
training latents (`EDMConfig.components` above 0) Wiener's filter takes the place of c_skip z, and the
deviation that it leaves open that of c_out; with all variances equal the two are the same.
"""

from __future__ import annotations

import torch
from jaxtyping import Float
from torch import Tensor, nn

from anatomica.prior.latent_gaussian import LatentGaussian
from anatomica.prior.presets import EDMConfig, UNetConfig
from anatomica.prior.unet import UNet


class EDM(nn.Module):
    """D(z; sigma) = c_skip z + c_out K(c_in z; c_noise), in the space of standardised latents.

    With a Gaussian D = W z + c_out K(c_in z, W z; c_noise): the network also sees Wiener's estimate W z.
    """

    def __init__(self, network: nn.Module, config: EDMConfig, gaussian: LatentGaussian | None = None) -> None:
        super().__init__()
        self.network, self.config, self.gaussian = network, config, gaussian

    def forward(
        self, z_sigma: Float[Tensor, "b c h w d"], sigma: Float[Tensor, " b"]
    ) -> Float[Tensor, "b c h w d"]:
        """Prediction of the clean latent z_0."""
        data = self.config.sigma_data
        s = sigma.view(-1, 1, 1, 1, 1)
        norm = (s**2 + data**2).sqrt()
        seen = z_sigma / norm
        if self.gaussian is None:
            linear, c_out = data**2 / norm**2 * z_sigma, s * data / norm
        else:
            with torch.autocast(z_sigma.device.type, enabled=False):  # a filter of rounded noise is no filter
                linear = self.gaussian.denoise(z_sigma, sigma)
                c_out = self.gaussian.error(sigma).sqrt().view(z_sigma.shape)
            seen = torch.cat([seen, linear], dim=1)
        return linear + c_out * self.network(seen, sigma.log() / 4)

    def last_layers(self) -> tuple[nn.Module, ...]:
        """The layer that writes the network's output."""
        return (self.network.get_submodule("out"),)

    def loss_weight(self, sigma: Float[Tensor, " b"]) -> Float[Tensor, " b"]:
        """One over the mean of c_out^2, so that every noise level has an equal share of the loss."""
        if self.gaussian is not None:
            return 1 / self.gaussian.error(sigma).mean(dim=1)
        data = self.config.sigma_data
        return (sigma**2 + data**2) / (sigma * data) ** 2


def build_network(channels: int, n: int, unet: UNetConfig, config: EDMConfig) -> UNet:
    """The U-Net of a denoiser; beside a Gaussian it also reads Wiener's estimate."""
    return UNet(channels, n, unet, inputs=2 * channels if config.components else channels)


def build_denoiser(channels: int, n: int, unet: UNetConfig, config: EDMConfig) -> EDM:
    """The denoiser of latents of `channels` x n^3, untrained; a Gaussian is not yet fitted."""
    gaussian = LatentGaussian(config.components, channels * n**3) if config.components else None
    return EDM(build_network(channels, n, unet, config), config, gaussian)


def training_sigmas(config: EDMConfig, uniform: Float[Tensor, " b"]) -> Float[Tensor, " b"]:
    """ln sigma ~ N(p_mean, p_std^2), one level for each number in (0, 1).

    Uniform numbers in, so that a batch may be stratified: the same marginal law with less variance per step.
    """
    return (config.p_mean + config.p_std * torch.special.ndtri(uniform)).exp()


class LatentScaler(nn.Module):
    """Latents have per-channel statistics; the denoiser's space has mean 0 and SD 1 in every channel."""

    mean: Tensor
    std: Tensor

    def __init__(self, channels: int) -> None:
        super().__init__()
        self.register_buffer("mean", torch.zeros(channels))
        self.register_buffer("std", torch.ones(channels))

    @torch.no_grad()
    def fit(self, latents: Float[Tensor, "b c h w d"]) -> LatentScaler:
        self.mean.copy_(latents.mean(dim=(0, 2, 3, 4)))
        self.std.copy_(latents.std(dim=(0, 2, 3, 4)).clamp_min(1e-6))
        return self

    def standardise(self, latent: Float[Tensor, "b c h w d"]) -> Float[Tensor, "b c h w d"]:
        """Encoder's space -> denoiser's space."""
        return (latent - self.mean[:, None, None, None]) / self.std[:, None, None, None]

    def restore(self, standardised: Float[Tensor, "b c h w d"]) -> Float[Tensor, "b c h w d"]:
        """Denoiser's space -> encoder's and decoders' space."""
        return standardised * self.std[:, None, None, None] + self.mean[:, None, None, None]
