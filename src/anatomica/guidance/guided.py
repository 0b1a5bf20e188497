"""Guidance: a denoiser made out of a denoiser, so that no sampler has to know about it."""

from __future__ import annotations

from collections.abc import Callable

import torch
from jaxtyping import Float
from torch import Tensor

from anatomica.prior.sampler import Denoiser


def guided(denoiser: Denoiser, potential: Callable[[Tensor], Tensor]) -> Denoiser:
    """D_w(z; sigma) = D(z; sigma) - sigma^2 grad L, L = potential(D(z; sigma)) with one value per sample.

    The gradient is taken at the noisy latent, through the denoiser, as in the paper.
    """

    def D_w(z: Float[Tensor, "b c h w d"], sigma: Float[Tensor, " b"]) -> Float[Tensor, "b c h w d"]:
        with torch.enable_grad():
            at = z.detach().requires_grad_()
            z_0 = denoiser(at, sigma)
            (slope,) = torch.autograd.grad(potential(z_0).sum(), at)
        return z_0.detach() - sigma.view(-1, 1, 1, 1, 1) ** 2 * slope

    return D_w


def corrected(denoiser: Denoiser, correct: Callable[[Tensor, Tensor], Tensor]) -> Denoiser:
    """D_w(z; sigma) = correct(D(z; sigma), sigma): a solver's step on the clean prediction."""

    def D_w(z: Float[Tensor, "b c h w d"], sigma: Float[Tensor, " b"]) -> Float[Tensor, "b c h w d"]:
        return correct(denoiser(z, sigma), sigma)

    return D_w
