"""Windows: asks and constraints that name vertebrae begin in an unguided sample that shows them, a scout.

A cube shows a part of a spine. Guidance moves borders; it does not move a window from the chest to the loins,
and a quantity of a vertebra that the prediction does not show has no place to be measured. So an ask of L3
begins in a scout in which L3 is there and not cut off: noised until only its layout is left, and denoised
under guidance. Constraints on vertebrae begin in the scout whose vertebrae are nearest to the targets.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import torch
from jaxtyping import Float
from torch import Tensor

from anatomica.anatomy.bounds import MOST_SEED
from anatomica.generation.choose import ANOTHER_SEED
from anatomica.generation.scouts import scout
from anatomica.guidance.gauss_newton import coarsened, first_moments
from anatomica.guidance.prediction import Prediction
from anatomica.guidance.residuals import geometric_probe
from anatomica.measurement.goals import Row, constraints_in, goals_in
from anatomica.measurement.placing import Resolved
from anatomica.measurement.vocabulary.subject import Subject
from anatomica.prior.field import decode_labels
from anatomica.prior.zoo import Model
from anatomica.spec.vocabulary_tables import CURVES

SCOUT = 32
"""Voxels along the edge at which scouts are looked at."""
MARGIN = 1 / 16
"""Of the cube's edge: a tissue that is nearer to its upper or lower end may be cut off after guidance."""
SPECK = 8
"""Voxels of a scout that are no tissue yet."""
SAMPLED, COMPARED = 24, 12
"""Scouts that are looked at, one by one: until one shows what is asked, and how many are compared where
constraints have a place."""
SAMPLED_STEPS = 8
"""Steps of a scout: it only tells which vertebrae are there."""


class View(NamedTuple):
    """What a scout must show: tissues by name, and of some regions (first letters) so many tissues."""

    names: tuple[str, ...]
    regions: tuple[tuple[str, int], ...]


def asked_view(rows: Sequence[Row], tissues: Sequence[str]) -> View:
    """The tissues that asks and constraints name. A quantity of two vertebrae (a disc, an angle) needs those
    between as well.

    >>> asked_view((), ("T12", "L1", "L2"))
    View(names=(), regions=())
    """
    found = {tissues[c - 1] for r in constraints_in(rows) for c in r.selection if c}
    regions: dict[str, int] = {}
    for key in (key for goal in goals_in(rows) for key in goal.ask.keys):
        places = [tissues.index(x) for x in re.findall(r"\w+", key) if x in tissues]
        if places:
            found |= set(tissues[min(places) : max(places) + 1])
        if key in CURVES:
            letter, count = CURVES[key]
            regions[letter] = max(count, regions.get(letter, 0))
    return View(tuple(x for x in tissues if x in found), tuple(regions.items()))


def begin_in_view(
    model: Model, seeds: Sequence[int], asked: Sequence[Sequence[Row]]
) -> Float[Tensor, "b c h w d"] | None:
    """Where guided samples begin: in a scout that shows the tissues they are asked for; None: in noise.

    Only a column has windows.
    """
    if not model.autoencoder.config.column:
        return None
    wanted = [asked_view(rows, model.table.tissues) for rows in asked]
    if not any(view.names or view.regions for view in wanted):
        return None
    drawn = [
        _scout(model, seed, view, constraints_in(rows))
        for seed, view, rows in zip(seeds, wanted, asked, strict=True)
    ]
    return torch.cat(drawn)


@torch.no_grad()
def _scout(
    model: Model, seed: int, view: View, constraints: Sequence[Resolved]
) -> Float[Tensor, "1 c h w d"]:
    """The first of a seed's scouts that shows all that is asked, else the one that shows most of it.

    Where constraints have a place and a size, the first few are compared, and of those that show most of what
    is asked the nearest is taken.
    """
    best: tuple[float, float, Tensor] | None = None
    placed = [coarsened(first_moments(r), SCOUT // 2) for r in constraints if r.wanted.any_moment]
    for k in range(COMPARED if placed else SAMPLED):
        z = scout(model, (seed + k * ANOTHER_SEED) % (MOST_SEED + 1), SAMPLED_STEPS)
        if not view.names and not view.regions:
            return z
        (labels,) = decode_labels(model.autoencoder.field, model.scaler.restore(z), SCOUT)
        s = Subject(model.label_map(labels.cpu().numpy()), model.about)
        shown = share_shown(s, view) * (1.0 if in_order(s) else 0.5)
        if shown == 1 and not placed:
            return z
        near = -_distance(model, z, placed) if placed else 0.0
        if best is None or (shown, near) > best[:2]:
            best = shown, near, z
    assert best is not None
    return best[2]


def _distance(model: Model, z: Float[Tensor, "1 c h w d"], constraints: Sequence[Resolved]) -> float:
    """Sum of squares of a sample's residuals, in tolerances: how far masses and centroids have to go."""
    now, total = Prediction.of(model, z), 0.0
    for r in (r.to(now.z) for r in constraints):
        X = r.domains.points()[None]
        S = now.probability(X.reshape(1, -1, 3), r, "sum").reshape(X.shape[:-1])
        total += float(geometric_probe(S, X, r, model.frame).rho.square().sum())
    return total


def share_shown(s: Subject, view: View) -> float:
    """How much of a view a label map shows and does not cut off above or below, 0 to 1."""
    whole = [x for x in s.cube.table.tissues if _whole(s, x)]
    shares = [float(x in whole) for x in view.names]
    shares += [min(sum(x.startswith(r) for x in whole) / count, 1.0) for r, count in view.regions]
    return sum(shares) / len(shares)


def in_order(s: Subject) -> bool:
    """Whether the tissues that a label map shows follow one another in the table: a column without a gap."""
    tissues = s.cube.table.tissues
    places = [i for i, x in enumerate(tissues) if s.there(x) and s.mask(x).sum() > SPECK]
    return not places or places[-1] - places[0] + 1 == len(places)


def _whole(s: Subject, name: str) -> bool:
    if not s.there(name):
        return False
    rows = np.flatnonzero(s.mask(name).any((0, 1)))
    margin = round(MARGIN * s.n)
    return bool(rows[0] > margin and rows[-1] < s.n - 1 - margin)
