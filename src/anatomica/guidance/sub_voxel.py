"""Sub-voxel truth: what the field itself has in a constraint's domains, on no output grid.

A label map rounds every voxel to one tissue. On a thin domain that rounding is larger than a tolerance: a
polish can fit it, and the same anatomy on another grid then fails. The field's own border, its margin at 1/2,
lies between voxels.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import torch
from jaxtyping import Bool, Float
from scipy import ndimage
from torch import Tensor

from anatomica.anatomy.label_map import LabelMap
from anatomica.guidance.asks import measure_goal
from anatomica.guidance.outside import outside_of_field
from anatomica.guidance.prediction import Prediction
from anatomica.measurement.domains.domain import Domains, Grid
from anatomica.measurement.goals import Goal, Row
from anatomica.measurement.homology import Betti, betti_numbers
from anatomica.measurement.measure import Fine
from anatomica.measurement.moments import measure_moments
from anatomica.measurement.placing import Resolved
from anatomica.measurement.vocabulary.subject import Subject

FINER = 2
"""Points along a domain's axis for each of its own, and for each output voxel: a certificate holds at n and
at 2n."""
LEAST = 16
"""Points along an axis that are too few to be made fewer."""
SKIP = 0.02
"""Variation of the margin below which not every point is decoded."""


def fine_domains(r: Resolved, n: int, finer: float = FINER, most: float = 2 * FINER) -> Domains:
    """The constraint's domains with `finer` times the points along each sampled axis.

    Its own points are the spec's. A domain that is large beside them has at least `finer` for each voxel of
    the n^3 output; one that has many for each voxel keeps `most`.
    """
    placed = r.domains.s[r.domains.valid]
    size = (placed if len(placed) else r.domains.s).abs().amax(dim=0).tolist()
    grid = []
    for own, s in zip(r.domains.grid, size, strict=True):
        wanted = max(round(finer * own), math.ceil(finer * n * s))
        grid.append(1 if own == 1 else min(wanted, max(math.ceil(most * n * s), LEAST)))
    a, e, g = grid
    return replace(r.domains, grid=(a, e, g))


@torch.no_grad()
def fine_margin(now: Prediction, r: Resolved, domains: Domains) -> Float[Tensor, "b k a e g"]:
    """The structure's margin at the domains' points, above 1/2 where the field has it."""
    X = domains.to(now.features).points()
    X = X if X.dim() == 6 else X.expand(len(now), *X.shape)
    return torch.stack([now.margin(X[:, k], r, SKIP) for k in range(X.shape[1])], dim=1)


@torch.no_grad()
def measure_fine(
    now: Prediction, resolved: Sequence[Row], n: int, label_map: LabelMap | None = None
) -> tuple[Fine, ...]:
    """One sample's own constraints and goals, measured without its output grid of n^3 voxels.

    The levels of goals are placed on the label map.
    """
    found, s = [], None if label_map is None else Subject(label_map, now.model.about)
    for r in resolved:
        if isinstance(r, Goal):
            found.append(Fine(None, named=None if s is None else measure_goal(now, r, s)))
            continue
        moments = None
        if r.wanted.any_moment:
            domains = fine_domains(r, n)
            S = (fine_margin(now, r, domains)[0] > 0.5).double().cpu()
            moments = measure_moments(S, domains)
        counts = _counts(now, r, n) if r.wanted.betti is not None else ()
        found.append(Fine(moments, counts, outside_of_field(now, r)))
    return tuple(found)


def _counts(now: Prediction, r: Resolved, n: int) -> tuple[tuple[tuple[str, Betti], ...], ...]:
    """Betti numbers at twice the resolution, and when the border moves inwards and outwards."""
    grid: Grid = tuple(FINER * m for m in r.domains.grid)  # type: ignore[assignment]
    domains = replace(r.domains, grid=grid).to(now.features)
    nothing = Betti(0, 0, 0)
    counts = []
    for k in range(r.domains.count):
        if k not in r.valid_domains:
            counts.append((("", nothing),))
            continue
        one = Domains(
            domains.R[k : k + 1],
            domains.s[k : k + 1],
            domains.t[k : k + 1],
            grid,
            domains.valid[k : k + 1],
            ("",),
        )
        there = now.margin(one.points(), r, SKIP)[0].cpu().numpy() > 0.5
        spacing = [float(s) / m for s, m in zip(one.s[0].tolist(), grid, strict=True)]
        counts.append(conditions(there, spacing, calibre_reach(now, r, n)))
    return tuple(counts)


def calibre_reach(now: Prediction, r: Resolved, n: int) -> float:
    """How far a count must withstand a move of the border, in cube units: half an output voxel by default."""
    stated = r.constraint.calibre_mm
    return 0.5 / n if stated is None else stated / 2 / now.model.edge_mm


def conditions(
    there: Bool[np.ndarray, "x y z"], spacing: Sequence[float], reach: float
) -> tuple[tuple[str, Betti], ...]:
    """Betti numbers as they are, and with the border moved both ways by `reach`, in the spacing's units."""
    found = [("at twice the resolution", betti_numbers(there))]
    if reach > 0:
        inner = ndimage.distance_transform_edt(there, sampling=spacing)
        outer = ndimage.distance_transform_edt(~there, sampling=spacing)
        # Distances are between voxel centres; the border lies half a voxel before the first one.
        half = min(spacing) / 2
        found += [
            ("with the border moved inwards", betti_numbers(np.asarray(inner) > reach + half)),
            ("with the border moved outwards", betti_numbers(np.asarray(outer) <= reach + half)),
        ]
    return tuple(found)
