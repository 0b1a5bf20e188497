"""A solver without weights: damped steps on the clean latent, in tolerances and in the prior's metric."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

import torch
from jaxtyping import Float
from torch import Tensor

from anatomica.guidance.asks import Follower, Rows
from anatomica.guidance.field_jacobian import jacobian
from anatomica.guidance.outside import outside_probe
from anatomica.guidance.prediction import Prediction
from anatomica.guidance.residuals import (
    EMPTY_TEMPERATURE,
    Probe,
    filling_probe,
    geometric_probe,
)
from anatomica.guidance.topological_residuals import topological_probe
from anatomica.guidance.usual_volumes import UsualVolumes
from anatomica.measurement.goals import Goal
from anatomica.measurement.moments import measure_moments
from anatomica.measurement.parse import Union
from anatomica.measurement.placing import Resolved, Tissues
from anatomica.prior.whole_levels import settle_levels
from anatomica.prior.zoo import Model
from anatomica.spec.quantities import QUANTITIES

SETTLED = 3.0
"""The noise below which a column's levels are made whole before each step. Done once at the end, a window
moved by half a vertebra, and the polish moved labels instead of bones to meet its targets."""
SETTLE_STEPS = 4

Asked = tuple[Probe, Resolved | Tissues]
"""Residuals and the constraint, or the tissues, that they are of."""


@dataclass(frozen=True)
class Settings:
    """`damping` is the share of J S J^T's mean diagonal that is added to it; `metric` the least noise whose
    posterior covariance S is the metric of steps; `reach` how far steps in noise go at most (RMS of the
    standardised latent, in units of sigma) and `radius` how far at most without noise; `sharp` the sigma from
    which on shape and spread are asked for, `usual` that from which on no tissue may leave its usual volume;
    `union` how geometry sees several tissues; `skip` the variation
    below which topology does not decode every point; `grid` the most points per axis at which geometry is
    measured while sampling (the last polish uses the constraint's own grid).

    Development targets, one draw: of 16 tasks of hearts 15 are valid, and 11 with a plain metric, damping
    0.003, reach 0.3 and steps twice as long in noise (docs/guidance.md).
    """

    damping: float = 0.03
    metric: float = 1.0
    reach: float = 0.1
    radius: float = 0.08
    sharp: float = 0.3
    usual: float = 4.0
    union: Union = "sum"
    skip: float = 0.05
    grid: int = 16


def gauss_newton(
    model: Model,
    resolved: Sequence[Resolved],
    settings: Settings = Settings(),
    goals: Sequence[Sequence[Goal]] = (),
) -> Callable[[Tensor, Tensor], Tensor]:
    """correct(z_0, sigma) -> z_0 nearer to the targets, for `guidance.guided.corrected`.

    With residuals rho in units of their tolerances and J = d rho / d z, the step is
    -S J^T (J S J^T + mu I)^-1 rho: of all changes of the latent that remove the residuals the likeliest by
    the Gaussian of the training latents, so that a larger ventricle brings a larger heart; damped so that
    conflicting ones stay finite. In a plain metric (S = I) the smallest change is often implausible: a
    ventricle grows wherever the decoder gives way. No backward pass through the U-Net, and one through the
    field (`field_jacobian`). `goals` are every sample's named quantities, or those that all samples share.
    """
    follower, usual = Follower(goals), UsualVolumes.of(model)
    sharp = [coarsened(r.to(model.scaler.mean), settings.grid) for r in resolved]
    blurred = [first_moments(r) for r in sharp]

    def correct(z_0: Float[Tensor, "b c h w d"], sigma: Float[Tensor, " b"]) -> Float[Tensor, "b c h w d"]:
        if sigma.max() <= SETTLED:
            z_0 = settle_levels(model.autoencoder, model.scaler, model.denoiser.gaussian, z_0, SETTLE_STEPS)
        asked = sharp if sigma.max() <= settings.sharp else blurred
        return z_0 + newton_step(model, asked, z_0, sigma, settings, follower, usual)

    return correct


def coarsened(r: Resolved, grid: int) -> Resolved:
    """The same constraint with at most `grid` points per axis; moments hardly change, topology would."""
    if r.wanted.betti is not None or max(r.domains.grid) <= grid:
        return r
    a, e, g = (min(n, grid) for n in r.domains.grid)
    return replace(r, domains=replace(r.domains, grid=(a, e, g)))


def first_moments(r: Resolved) -> Resolved:
    """The constraint without shape and spread.

    A prediction in noise is the mean of all anatomies that may be in it. Its mass and centroid are the means
    of theirs, but its shape is wider than any of theirs by how much they differ: a wall that is asked to be
    thin while its place is unknown gets too small a ventricle inside.
    """
    return replace(r, wanted=r.wanted.without(q.key for q in QUANTITIES if q.sharp))


@torch.no_grad()
def newton_step(
    model: Model,
    resolved: Sequence[Resolved],
    z: Float[Tensor, "b c h w d"],
    sigma: Float[Tensor, " b"],
    settings: Settings,
    follower: Follower | None = None,
    usual: UsualVolumes | None = None,
) -> Float[Tensor, "b c h w d"]:
    """One damped step at clean standardised latents that were predicted in noise of level sigma."""
    now = Prediction.of(model, z)
    found: list[Asked] = [(probe, r) for r in resolved for probe in probes(now, r, settings)]
    if usual is not None and sigma.max() <= settings.usual:
        found += usual.probes(now)
    named = None if follower is None else follower.rows(now, sigma, settings.union)
    sigma = sigma.to(z)
    step = step_from(now, found, settings, [] if named is None else [named], sigma)
    return limited(step, (settings.reach * sigma).clamp_min(settings.radius).view(-1, 1, 1, 1, 1))


def step_from(
    now: Prediction,
    found: Sequence[Asked],
    settings: Settings,
    named: Sequence[Rows] = (),
    sigma: Float[Tensor, " b"] | None = None,
) -> Float[Tensor, "b c h w d"]:
    """The step that removes the residuals of probes and of named quantities, in the metric of noise sigma."""
    acting = [(probe, r) for probe, r in found if probe.rho.shape[1] and probe.points.shape[1]]
    if not acting and not named:
        return torch.zeros_like(now.z)
    rho = torch.cat([*(probe.rho for probe, _ in acting), *(x.rho for x in named)], dim=1)
    J = torch.cat([*(jacobian(now, probe, r) for probe, r in acting), *(x.J for x in named)], dim=1)
    gaussian = now.model.denoiser.gaussian
    if gaussian is None:
        return (_weights(rho, J, settings) @ J)[:, 0].view_as(now.z)
    least = J.new_full((len(J),), settings.metric)
    noise = least if sigma is None else torch.maximum(sigma, least)
    combined = _weights(rho, gaussian.posterior_root(J, noise), settings) @ J
    return gaussian.posterior_times(combined, noise)[:, 0].view_as(now.z)


def probes(now: Prediction, r: Resolved, settings: Settings) -> list[Probe]:
    """A constraint's residuals at the current prediction: geometric, topological or both.

    Topology is that of the margin, whose level 1/2 is the label map's border; where it does not vary it is
    not decoded.
    """
    batch, r = len(now), r.to(now.z)
    X = r.domains.points()
    X = X if X.dim() == 6 else X.expand(batch, *X.shape)
    wanted, found = r.wanted, []
    if wanted.any_moment:
        S = now.probability(X.reshape(batch, -1, 3), r, settings.union).reshape(X.shape[:-1])
        found.append(geometric_probe(S, X, r, now.model.frame, settings.union))
        found += fillings(now, measure_moments(S, r.domains).mass, X, r, settings)
    if wanted.betti is not None:
        for k in r.valid_domains:
            S = now.margin(X[:, k], r, settings.skip)
            found.append(topological_probe(S, X[:, k], wanted.betti))
    return [*found, *outside_probe(now, r, settings.union)]


def fillings(now: Prediction, mass: Tensor, X: Tensor, r: Resolved, settings: Settings) -> list[Probe]:
    """The probe of empty domains, if there are any."""

    def probability(points: Tensor) -> Tensor:
        return now.probability(points, r, settings.union, EMPTY_TEMPERATURE)

    probe = filling_probe(mass, X, r, probability, settings.union)
    return [] if probe is None else [probe]


def _weights(
    rho: Float[Tensor, "b r"], JR: Float[Tensor, "b r E"], settings: Settings
) -> Float[Tensor, "b 1 r"]:
    """-(J S J^T + mu I)^-1 rho, with S = R R^T; mu is in proportion to the mean diagonal of rows that act.

    Rows that are switched off, or pad a batch, are zero and do not count.
    """
    A = (JR @ JR.mT).double()
    diagonal = A.diagonal(dim1=-2, dim2=-1)
    acting = (diagonal > 0).sum(dim=-1, keepdim=True).clamp_min(1)
    mu = settings.damping * diagonal.sum(dim=-1, keepdim=True) / acting + 1e-12
    A = A + torch.diag_embed(mu.expand_as(diagonal))
    return torch.linalg.solve(A, -rho.double()).to(rho)[:, None]


def limited(step: Float[Tensor, "b c h w d"], radius: float | Tensor) -> Float[Tensor, "b c h w d"]:
    """The step, its RMS no larger than the radius."""
    rms = step.square().mean(dim=(1, 2, 3, 4), keepdim=True).sqrt()
    return step * (radius / torch.maximum(rms, torch.as_tensor(radius).to(rms)))
