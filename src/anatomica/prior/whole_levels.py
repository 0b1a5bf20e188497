"""Whole levels: a column's latent is moved a little, so that every vertebra has one level.

Decoders of a column write a continuous level (`prior/column.py`). A denoiser that is not trained to the end
draws bones and levels in order, but not quite in step: a level of 7.5 inside of a vertebra gives it two
labels. How far levels are from whole numbers is a function of the latent, so they are set right by its slope,
in the prior's metric: mostly all levels move together, by less than one half.
"""

from __future__ import annotations

import math

import torch
from jaxtyping import Float
from torch import Tensor

from anatomica.prior.autoencoder import Autoencoder
from anatomica.prior.edm import LatentScaler
from anatomica.prior.latent_gaussian import LatentGaussian

STEPS = 16
LOOKED_AT = 30_000
"""Points of the cube in which bone is looked for."""
IN_BONE = 2_500
"""Points in bone at most whose levels count."""
SURE = 1.0
"""The logit from which on a point is in bone."""
METRIC = 1.0
"""The noise whose posterior covariance is the metric, as for guidance."""
NUDGE = 1e-3
"""Largest change of the latent by which the slope of levels along a step is found."""


def settle_levels(
    autoencoder: Autoencoder,
    scaler: LatentScaler,
    gaussian: LatentGaussian | None,
    z: Float[Tensor, "b c h w d"],
    steps: int = STEPS,
) -> Float[Tensor, "b c h w d"]:
    """Standardised latents whose levels in bone are nearer to whole numbers; each sample by itself."""
    if not autoencoder.config.column:
        return z
    return torch.cat([_settle(autoencoder, scaler, gaussian, one, steps) for one in z.split(1)])


def unsettled(level: Float[Tensor, "*p"]) -> Float[Tensor, ""]:
    """Mean of 1 - cos(2 pi u): 0 if all levels are whole, 1 if they are anything, 2 if all are halves."""
    return (1 - torch.cos(2 * math.pi * level)).mean()


def _settle(
    autoencoder: Autoencoder,
    scaler: LatentScaler,
    gaussian: LatentGaussian | None,
    z: Float[Tensor, "1 c h w d"],
    steps: int,
) -> Float[Tensor, "1 c h w d"]:
    """Steps down `unsettled` along S times its slope.

    Its second derivative along a step is at most (2 pi)^2 times the mean square of the levels' change, which
    bounds the step from below the optimum: no step goes up.
    """
    field = autoencoder.field
    points = torch.rand(1, LOOKED_AT, 3, generator=torch.Generator().manual_seed(0)).to(z)
    with torch.no_grad():
        bone, _ = field.column_at(field.prepare(scaler.restore(z)), points)
    points = points[:, bone[0] > SURE][:, :IN_BONE]
    if not points.shape[1]:
        return z

    def levels(latent: Tensor) -> Tensor:
        return field.column_at(field.prepare(scaler.restore(latent)), points)[1]

    for _ in range(steps):
        with torch.enable_grad():
            leaf = z.detach().requires_grad_()
            u = levels(leaf)
            (slope,) = torch.autograd.grad(unsettled(u), leaf)
        with torch.no_grad():
            rows = slope.flatten(1)[:, None]
            if gaussian is not None:
                rows = gaussian.posterior_times(rows, rows.new_full((1,), METRIC))
            down = -rows.view_as(z)
            longest = down.abs().amax()
            if longest <= 0:
                break
            along = (levels(z + NUDGE / longest * down) - u) * (longest / NUDGE)
            first = 2 * math.pi * (torch.sin(2 * math.pi * u) * along).mean()
            most = (2 * math.pi) ** 2 * along.square().mean()
            z = z + (-first / most.clamp_min(1e-12)).clamp_min(0) * down
    return z.detach()
