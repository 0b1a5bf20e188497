"""Guidance: a denoiser made out of a denoiser, so that no sampler has to know about it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Literal

import torch
from jaxtyping import Float
from torch import Tensor

from anatomica.sampler import Denoiser

Gradient = Literal["denoiser", "clean"]


def guided(
    denoiser: Denoiser, potential: Callable[[Tensor], Tensor], gradient: Gradient = "denoiser"
) -> Denoiser:
    """D_w(z; sigma) = D(z; sigma) - sigma^2 grad L, L = potential(D(z; sigma)) with one value a sample.

    The gradient is taken at the noisy latent, through the denoiser (the paper), or at the clean prediction
    alone (`clean`), which needs no backward pass of the U-Net.
    """

    def D_w(z: Float[Tensor, "b c h w d"], sigma: Float[Tensor, " b"]) -> Float[Tensor, "b c h w d"]:
        with torch.enable_grad():
            if gradient == "denoiser":
                at = z.detach().requires_grad_()
                z_0 = denoiser(at, sigma)
            else:
                z_0 = at = denoiser(z, sigma).detach().requires_grad_()
            (slope,) = torch.autograd.grad(potential(z_0).sum(), at)
        return z_0.detach() - sigma.view(-1, 1, 1, 1, 1) ** 2 * slope

    return D_w


NUDGE = 0.1
"""How far a noisy latent is moved to see how its clean prediction responds, in units of sigma."""


def corrected(
    denoiser: Denoiser,
    correct: Callable[[Tensor, Callable[[Tensor], Tensor] | None], Tensor],
    shaped: float = float("inf"),
) -> Denoiser:
    """D_w(z; sigma) = correct(D(z; sigma), respond): a solver's step on the clean prediction.

    Above the noise level `shaped` the solver gets `respond`, x -> dD/dz x by a finite difference, which costs
    a call of the denoiser; below, where the prediction nearly is the noisy latent, None.
    """

    def D_w(z: Float[Tensor, "b c h w d"], sigma: Float[Tensor, " b"]) -> Float[Tensor, "b c h w d"]:
        z_0 = denoiser(z, sigma)

        def respond(x: Float[Tensor, "b c h w d"]) -> Float[Tensor, "b c h w d"]:
            rms = x.flatten(1).square().mean(dim=1).sqrt().clamp_min(1e-12)
            h = (NUDGE * sigma / rms).view(-1, 1, 1, 1, 1)
            return (denoiser(z + h * x, sigma) - z_0) / h

        return correct(z_0, respond if float(sigma.max()) > shaped else None)

    return D_w
