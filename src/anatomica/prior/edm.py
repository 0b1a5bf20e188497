"""EDM preconditioning (Karras et al. 2022, Table 1): a network becomes a denoiser D(z_sigma; sigma)."""

from __future__ import annotations

import torch
from jaxtyping import Float
from torch import Tensor, nn

from anatomica.prior.presets import EDMConfig


class EDM(nn.Module):
    """D(z; sigma) = c_skip z + c_out K(c_in z; c_noise), in the space of standardised latents."""

    def __init__(self, network: nn.Module, config: EDMConfig) -> None:
        super().__init__()
        self.network, self.config = network, config

    def forward(
        self, z_sigma: Float[Tensor, "b c h w d"], sigma: Float[Tensor, " b"]
    ) -> Float[Tensor, "b c h w d"]:
        """Prediction of the clean latent z_0."""
        data = self.config.sigma_data
        s = sigma.view(-1, 1, 1, 1, 1)
        norm = (s**2 + data**2).sqrt()
        c_skip, c_out, c_in = data**2 / norm**2, s * data / norm, 1 / norm
        return c_skip * z_sigma + c_out * self.network(c_in * z_sigma, sigma.log() / 4)

    def last_layers(self) -> tuple[nn.Module, ...]:
        """The layer that writes the network's output."""
        return (self.network.get_submodule("out"),)

    def loss_weight(self, sigma: Float[Tensor, " b"]) -> Float[Tensor, " b"]:
        """omega(sigma) = (sigma^2 + sigma_data^2) / (sigma sigma_data)^2: an equal share for every level."""
        data = self.config.sigma_data
        return (sigma**2 + data**2) / (sigma * data) ** 2


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
