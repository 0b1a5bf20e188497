"""Asks as residuals: named quantities on a clean prediction, with their derivative by the latent.

Levels, rays and sections are placed on the prediction's own label map, and a quantity is then the same
function of samples that measures a finished label map; only the samples are the field's.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace

import numpy as np
import torch
from jaxtyping import Float, Int64
from torch import Tensor

from anatomica.guidance.field_jacobian import jacobian
from anatomica.guidance.prediction import Prediction
from anatomica.guidance.residuals import UNSATURATED, Probe
from anatomica.measurement.goals import Goal, Placed, allowed, measured, place, residual, sides
from anatomica.measurement.parse import Union
from anatomica.measurement.placing import Tissues, selection
from anatomica.measurement.vocabulary.plan import Missing
from anatomica.measurement.vocabulary.subject import Subject
from anatomica.prior.field import corners, decode_labels

BEGIN = 5.0
"""Noise level from which on named quantities are guided: above it predictions are means of all anatomies.
This, `STABLE`, `STILL` and `COARSE` are first choices; no run has compared them with others yet."""
AGAIN = 1.7
"""Levels are placed anew when the noise has fallen by this factor since they were placed: at every second of
25 steps. Of 14 aortas with a diameter and a tortuosity 11 were valid at one draw, as many as with 1.25, which
places them at every step, in 0.85 of the time."""
STABLE, STILL = 0.6, 0.1
"""Below this noise level, levels whose renewed placing changes no value by more than this share of its
tolerance are frozen."""
COARSE = 2
"""Voxels of the placing between points of volumes while sampling."""
QUARTER = np.array([(1, 1, 1), (1, -1, -1), (-1, 1, -1), (-1, -1, 1)]) / 4
"""Points of a voxel, in voxels from its centre, that stand for how far a tissue fills it."""
SUB_VOXEL = 12_000
"""Goals with more points than this have no sub-voxel residuals: rounding evens out over so many voxels."""


@dataclass(frozen=True, eq=False)
class Reading:
    """Where some tissues are decoded for several goals, and how the samples of their pieces follow.

    Decoded point q belongs to goal `owner[q]`; sample p is the sum of S at `place[p]`, weighted by `share`.
    `pieces` are (goal, piece of that goal, first sample, last sample).
    """

    tissues: Tissues
    points: Float[Tensor, "q 3"]
    owner: Int64[Tensor, " q"]
    place: Int64[Tensor, "p c"]
    share: Float[Tensor, "p c"]
    pieces: tuple[tuple[int, int, int, int], ...]


def readings(
    found: Sequence[Placed], now: Prediction, voxels: int | None = None, fine: float | None = None
) -> list[Reading]:
    """The pieces of placed goals, by tissues.

    Samples are read at the points themselves; with `voxels` trilinearly from the centres of that grid's
    voxels, as from a label map; with `fine` as the mean of four points around each, a quarter of `fine` (in
    cube units) away along every axis: how far a voxel of a finer label map would be filled.
    """
    model = now.model
    grouped: dict[tuple[str, ...], list[tuple[int, int, np.ndarray]]] = {}
    for g, one in enumerate(found):
        for k, piece in enumerate(one.pieces):
            grouped.setdefault(piece.tissues, []).append((g, k, piece.points_mm / model.edge_mm))
    out = []
    for names, members in grouped.items():
        counts = [len(points) for _, _, points in members]
        ends = np.cumsum([0, *counts]).tolist()
        points = torch.from_numpy(np.concatenate([points for _, _, points in members])).to(now.z)
        owner = torch.from_numpy(np.repeat([g for g, _, _ in members], counts)).to(now.z.device)
        pieces = tuple((g, k, ends[i], ends[i + 1]) for i, (g, k, _) in enumerate(members))
        own = Tissues(selection(model.table, names))
        at = torch.arange(len(points), device=now.z.device)
        if voxels is not None:
            cells, share = corners(points[None], (voxels, voxels, voxels))
            share = share[0] * ((points >= 0) & (points <= 1)).all(-1, keepdim=True)
            numbers, at = (owner[:, None] * voxels**3 + cells[0]).unique(return_inverse=True)
            x, y, z = numbers // voxels**2 % voxels, numbers // voxels % voxels, numbers % voxels
            centres = (torch.stack([x, y, z], -1).to(points) + 0.5) / voxels
            out.append(Reading(own, centres, numbers // voxels**3, at, share.to(points), pieces))
        elif fine is not None:
            around = points[None] + torch.from_numpy(QUARTER).to(points)[:, None] * fine
            at = at + torch.arange(4, device=at.device)[:, None] * len(points)
            share = torch.full((len(points), 4), 0.25).to(points)
            out.append(Reading(own, around.flatten(0, 1), owner.repeat(4), at.T, share, pieces))
        else:
            out.append(Reading(own, points, owner, at[:, None], torch.ones_like(points[:, :1]), pieces))
    return out


@dataclass(frozen=True, eq=False)
class Rows:
    """Residuals of one or several samples, and their derivatives by the latent."""

    rho: Float[Tensor, "b r"]
    J: Float[Tensor, "b r D"]


def nothing(now: Prediction) -> Rows:
    """No residuals of one sample."""
    return Rows(now.z.new_zeros(1, 0), now.z.new_zeros(1, 0, now.z[0].numel()))


def rows(
    now: Prediction, found: Sequence[Placed], read: Sequence[Reading], union: Union, hard: bool = False
) -> Rows:
    """One sample's residuals of placed goals, and d rho / d z.

    With `hard` the values are those of the label map, S > 1/2; the slopes are by the soft S all the same.
    """
    soft = [now.probability(r.points[None], r.tissues, union)[0] for r in read]
    leaves = [((S > 0.5).to(S) if hard else S).detach().requires_grad_() for S in soft]
    with torch.enable_grad():
        samples = _samples(found, read, leaves)
        rho = torch.stack([_residual(one, own) for one, own in zip(found, samples, strict=True)])
        # Every decoded point belongs to one goal, so one backward pass finds every goal's own slopes.
        slopes = torch.autograd.grad(rho.sum(), leaves, materialize_grads=True) if rho.requires_grad else ()
    rho = rho.detach()[None]
    J = now.z.new_zeros(1, len(found), now.z[0].numel())
    for reading, S, slope in zip(read, soft, slopes, strict=False):
        moving = (S * (1 - S) > UNSATURATED).nonzero()[:, 0]
        if not len(moving):
            continue
        probe = Probe(
            rho, reading.points[moving][None], slope[moving][None, None], reading.owner[moving], union
        )
        J = J + jacobian(now, probe, reading.tissues)
    return Rows(rho, J)


def _samples(
    found: Sequence[Placed], read: Sequence[Reading], values: Sequence[Tensor]
) -> list[list[Tensor]]:
    """Every goal's samples, one tensor per piece, from what was decoded."""
    samples: list[list[Tensor]] = [[torch.empty(0)] * len(one.pieces) for one in found]
    for reading, S in zip(read, values, strict=True):
        at = (S[reading.place] * reading.share).sum(-1)
        for goal, piece, first, last in reading.pieces:
            samples[goal][piece] = at[first:last]
    return samples


def _residual(one: Placed, samples: Sequence[Tensor]) -> Tensor:
    """Zero, so that nothing is led anywhere, where a formula divides by a quantity that is zero now."""
    values = one.values(samples)
    try:
        most = allowed(one.goal, {key: float(x.detach()) for key, x in values.items()})
        found = residual(one.goal, sides(one.goal.ask, values), most).to(torch.float32)
    except Missing:
        return torch.zeros(())
    return found if bool(found.isfinite()) else torch.zeros(())


@torch.no_grad()
def subject(now: Prediction, n: int, coarse: int = 1) -> Subject:
    """One sample's label map on n^3 voxels, for placing."""
    model = now.model
    index = decode_labels(model.autoencoder.field, model.scaler.restore(now.z), n)[0]
    return Subject(model.label_map(index.cpu().numpy()), model.about, coarse=coarse)


def placed_on(s: Subject, goals: Sequence[Goal]) -> list[Placed | None]:
    """The goals that can be placed on a label map; None for the others."""
    found: list[Placed | None] = []
    for goal in goals:
        try:
            found.append(place(goal, s))
        except Missing:
            found.append(None)
    return found


@dataclass
class _Course:
    """One sample's levels during sampling."""

    sigma: float = float("inf")
    found: list[Placed | None] = field(default_factory=list)
    read: list[Reading] = field(default_factory=list)
    frozen: bool = False


class Follower:
    """Levels that follow the predictions of a batch: placed anew as the noise falls, frozen when stable."""

    def __init__(self, goals: Sequence[Sequence[Goal]]) -> None:
        self.goals = [[g for g in own if g.guided] for own in goals]
        self.courses: dict[int, _Course] = {}

    def rows(self, now: Prediction, sigma: Float[Tensor, " b"], union: Union) -> Rows | None:
        """Residuals of every sample's goals at its clean prediction; None while there are none."""
        if not any(self.goals):
            return None
        each = [self._rows(i, now.sample(i), float(sigma[i]), union) for i in range(len(now))]
        most = max(x.rho.shape[1] for x in each)
        if not most:
            return None
        pad = [most - x.rho.shape[1] for x in each]
        rho = torch.cat([torch.nn.functional.pad(x.rho, (0, p)) for x, p in zip(each, pad, strict=True)])
        J = torch.cat([torch.nn.functional.pad(x.J, (0, 0, 0, p)) for x, p in zip(each, pad, strict=True)])
        return Rows(rho, J)

    def _rows(self, i: int, now: Prediction, sigma: float, union: Union) -> Rows:
        goals = self.goals[i % len(self.goals)]
        if sigma > BEGIN or not goals:
            return nothing(now)
        course = self.courses.setdefault(i, _Course())
        if not course.frozen and sigma <= course.sigma / AGAIN:
            self._place(course, goals, now, sigma, union)
        there = [p for p in course.found if p is not None]
        return rows(now, there, course.read, union) if there else nothing(now)

    def _place(
        self, course: _Course, goals: Sequence[Goal], now: Prediction, sigma: float, union: Union
    ) -> None:
        before = course.found or [None] * len(goals)
        new = placed_on(subject(now, now.model.n, COARSE), goals)
        if sigma < STABLE and all(a is not None and b is not None for a, b in zip(before, new, strict=True)):
            moved = [
                abs(_soft(now, a, union) - _soft(now, b, union))  # type: ignore[arg-type]
                for a, b in zip(before, new, strict=True)
            ]
            course.frozen = max(moved) <= STILL
        course.found = [b if b is not None else a for a, b in zip(before, new, strict=True)]
        there = [p for p in course.found if p is not None]
        course.read, course.sigma = readings(there, now), sigma


def _soft(now: Prediction, one: Placed, union: Union) -> float:
    """A goal's residual at a prediction."""
    read = readings([one], now)
    values = [now.probability(r.points[None], r.tissues, union)[0] for r in read]
    return float(_residual(one, _samples([one], read, values)[0]))


@dataclass(frozen=True, eq=False)
class Certified:
    """Goals placed on the label map that a latent decodes to, read as the certificate will."""

    found: list[Placed]
    voxels: list[Reading]
    sub_voxel: tuple[list[Placed], list[Reading]]

    @classmethod
    def of(cls, now: Prediction, goals: Sequence[Goal], n: int) -> Certified:
        there = [p for p in placed_on(subject(now, n), goals) if p is not None]
        small = [p for p in there if sum(len(x.points_mm) for x in p.pieces) <= SUB_VOXEL]
        return cls(there, readings(there, now, voxels=n), (small, readings(small, now, fine=1.0 / n)))

    def rows(self, now: Prediction) -> list[Rows]:
        """Residuals of the label map, and of the field itself; none where nothing could be placed."""
        both = [(self.found, self.voxels), self.sub_voxel]
        found = [rows(now, found, read, "margin", hard=True) for found, read in both if found]
        return found or [nothing(now)]


@torch.no_grad()
def measure_goal(now: Prediction, goal: Goal, s: Subject) -> dict[str, float] | None:
    """A goal's quantities on the field itself, where a label map of this sample has its levels.

    Every sample is how far the field fills the space around a point, to a quarter of the label map's voxel.
    None if the label map has no such levels.
    """
    try:
        one = place(goal, s)
    except Missing:
        return None
    read = readings([one], now, fine=1.0 / s.n)
    values = [(now.probability(r.points[None], r.tissues, "margin")[0] > 0.5).double() for r in read]
    read = [replace(r, share=r.share.double()) for r in read]
    if not one.pieces:
        return measured(goal, s)
    found = one.values([x.cpu() for x in _samples([one], read, values)[0]])
    return {key: float(x) for key, x in found.items()}
