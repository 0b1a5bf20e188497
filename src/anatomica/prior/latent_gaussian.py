"""The Gaussian of the training latents: what is linear about a population, known before any training.

Its denoiser is Wiener's filter. A U-Net that is trained for an hour learns that filter late and only
roughly, and its samples then vary too little: organs have half to seven tenths of the population's standard
deviations. Given the filter, the network learns only what is not Gaussian (`prior/edm.py`).
"""

from __future__ import annotations

import torch
from jaxtyping import Float
from torch import Tensor, nn

FLOOR = 0.01
"""Least variance of an element, as a share of the mean: what no training patient varies stays movable."""


class LatentGaussian(nn.Module):
    """N(mean, C) of standardised latents, C = U diag(variance) U^T + P diag(rest) P with P = I - U U^T.

    The rows of `basis` are the principal components U^T; beside them every element varies by its own `rest`.
    Latents are flat in here, D = c h w d.
    """

    mean: Float[Tensor, " D"]
    basis: Float[Tensor, "k D"]
    variance: Float[Tensor, " k"]
    rest: Float[Tensor, " D"]

    def __init__(self, components: int, size: int) -> None:
        super().__init__()
        self.register_buffer("mean", torch.zeros(size))
        self.register_buffer("basis", torch.zeros(components, size))
        self.register_buffer("variance", torch.ones(components))
        self.register_buffer("rest", torch.ones(size))

    @torch.no_grad()
    def fit(self, latents: Float[Tensor, "m c h w d"]) -> LatentGaussian:
        """The principal components of m > k latents, by the eigenvectors of their m x m inner products."""
        flat, k = latents.flatten(1).double(), len(self.variance)
        mean = flat.mean(dim=0)
        x = flat - mean
        squares, vectors = torch.linalg.eigh(x @ x.T)
        squares, vectors = squares.flip(0)[:k], vectors.flip(1)[:, :k]
        basis = vectors.T @ x / squares.clamp_min(1e-12).sqrt()[:, None]
        variance = squares / (len(x) - 1)
        rest = x.square().sum(dim=0) / (len(x) - 1) - variance @ basis.square()
        rest = rest / (1 - basis.square().sum(dim=0)).clamp_min(FLOOR)  # what P takes away of an element
        self.mean.copy_(mean)
        self.basis.copy_(basis)
        self.variance.copy_(variance)
        self.rest.copy_(rest.clamp_min(FLOOR * rest.mean().clamp_min(1e-6)))
        return self

    def denoise(
        self, z_sigma: Float[Tensor, "b c h w d"], sigma: Float[Tensor, " b"]
    ) -> Float[Tensor, "b c h w d"]:
        """Wiener's filter: the clean latent's mean given the noisy one, if latents were this Gaussian."""
        noise = sigma.square()[:, None]
        x = z_sigma.flatten(1) - self.mean
        along = x @ self.basis.T
        other = x - along @ self.basis
        kept = along * (self.variance / (self.variance + noise))
        clean = self.mean + kept @ self.basis + other * (self.rest / (self.rest + noise))
        return clean.view(z_sigma.shape)

    def error(self, sigma: Float[Tensor, " b"]) -> Float[Tensor, "b D"]:
        """The variance of each element of the clean latent that the filter leaves open: diag(C - W C)."""
        noise = sigma.square()[:, None]
        shares = self.basis.square()
        along = (self.variance * noise / (self.variance + noise)) @ shares
        return along + (1 - shares.sum(dim=0)) * self.rest * noise / (self.rest + noise)

    def posterior_root(
        self, rows: Float[Tensor, "b r D"], sigma: Float[Tensor, " b"]
    ) -> Float[Tensor, "b r E"]:
        """J R for rows J, R R^T = S = (C^-1 + sigma^-2)^-1: how clean latents vary around the estimate.

        E = k + D: the components, then the rest; the same approximation as `error`, that they are
        independent.
        """
        noise = sigma.square()[:, None, None]
        along = rows @ self.basis.T
        other = rows - along @ self.basis
        along = along * (self.variance * noise / (self.variance + noise)).sqrt()
        return torch.cat([along, other * (self.rest * noise / (self.rest + noise)).sqrt()], dim=-1)

    def posterior_times(
        self, rows: Float[Tensor, "b r D"], sigma: Float[Tensor, " b"]
    ) -> Float[Tensor, "b r D"]:
        """S v for every row v, S as in `posterior_root`."""
        noise = sigma.square()[:, None, None]
        along = rows @ self.basis.T
        other = (rows - along @ self.basis) * (self.rest * noise / (self.rest + noise))
        other = other - (other @ self.basis.T) @ self.basis
        return (along * (self.variance * noise / (self.variance + noise))) @ self.basis + other
