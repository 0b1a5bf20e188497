"""Nothing beyond the box: the residual of a structure that goes on outside its domains, and its measure."""

from __future__ import annotations

from dataclasses import replace

import torch
from jaxtyping import Bool, Float
from torch import Tensor

from anatomica.guidance.prediction import Prediction
from anatomica.guidance.residuals import UNSATURATED, Probe
from anatomica.measurement.domains.domain import template
from anatomica.measurement.moments import measure_moments
from anatomica.measurement.outside import allowed_outside, in_a_domain, must_be_empty
from anatomica.measurement.parse import Union
from anatomica.measurement.placing import Resolved, of_sample

SAMPLING_GRID = 24
"""Points along the cube's axes at which sampling looks for what lies outside."""
POLISH_GRID = 32
CERTIFIED_GRID = 96
"""Finer than the output's voxels, and not a multiple of them."""
INSIDE_GRID = 16
SKIP = 0.02
"""Variation of the margin below which not every point is decoded."""


def outside_probe(now: Prediction, r: Resolved, union: Union = "sum") -> list[Probe]:
    """The residual (mass outside) / tolerance of soft probabilities; none where the outside is free."""
    if not must_be_empty(r.constraint):
        return []
    X = cube_points(SAMPLING_GRID, now).reshape(-1, 3)
    out = _outside(X, r, len(now))
    S = now.probability(X.expand(len(now), -1, 3), r, union) * out
    return [_probe(S, S, X, r, _inside(now, r, union), union)]


def certified_outside_probe(now: Prediction, r: Resolved) -> list[Probe]:
    """The same of the label map (margin > 1/2), with the slopes of the soft margin."""
    if not must_be_empty(r.constraint):
        return []
    X = cube_points(POLISH_GRID, now)
    S = now.margin(X.expand(len(now), *X.shape), r, SKIP).flatten(1)
    X = X.reshape(-1, 3)
    S = S * _outside(X, r, len(now))
    return [_probe((S > 0.5).to(S), S, X, r, _inside(now, r, "margin"), "margin")]


def _inside(now: Prediction, r: Resolved, union: Union) -> Float[Tensor, "b k"]:
    """The mass that each domain should have, or has where nothing is wanted of it."""
    wanted = r.wanted.values.get("mass")
    if wanted is not None:
        return wanted.to(now.z).expand(len(now), r.domains.count)
    a, e, g = (min(n, INSIDE_GRID) for n in r.domains.grid)
    domains = replace(r.domains, grid=(a, e, g))
    X = domains.points().expand(len(now), r.domains.count, a, e, g, 3)
    S = now.probability(X.reshape(len(now), -1, 3), r, union).reshape(X.shape[:-1])
    return measure_moments(S, domains).mass


def _probe(values: Tensor, S: Tensor, X: Tensor, r: Resolved, mass: Tensor, union: Union) -> Probe:
    """One residual per sample; a point acts while its probability is not saturated."""
    allowed = allowed_outside(r, mass)
    rho = values.mean(dim=1) / allowed
    moving = (S * (1 - S) > UNSATURATED).any(dim=0).nonzero()[:, 0]
    moves = (S[:, moving] * (1 - S[:, moving]) > UNSATURATED).to(S)
    slope = moves * (rho > 0)[:, None] / (allowed[:, None] * S.shape[1])
    points = X[moving].expand(len(S), -1, 3)
    owner = torch.zeros(len(moving), dtype=torch.long, device=S.device)
    return Probe(rho[:, None], points, slope[:, None], owner, union)


def cube_points(m: int, now: Prediction) -> Float[Tensor, "m m m 3"]:
    """Cell centres of an m^3 grid over the cube."""
    return template((m, m, m)).to(now.features) + 0.5


def _outside(X: Float[Tensor, "p 3"], r: Resolved, batch: int) -> Bool[Tensor, "b p"]:
    """Which points lie in no domain of each sample."""
    return torch.stack([~in_a_domain(X, of_sample(r, i).domains) for i in range(batch)])


@torch.no_grad()
def outside_of_field(now: Prediction, r: Resolved) -> float | None:
    """Mass of one sample's structure beyond its domains, on no output grid."""
    if not must_be_empty(r.constraint):
        return None
    X = cube_points(CERTIFIED_GRID, now)
    there = now.margin(X[None], r, SKIP)[0] > 0.5
    beyond = ~in_a_domain(X[there], r.domains)
    return float(beyond.sum()) / there.numel()
