"""The last steps: on the finished latent, against the label map as it will be certified."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from dataclasses import replace

import torch
from jaxtyping import Float
from torch import Tensor

from anatomica.guidance.asks import Certified
from anatomica.guidance.gauss_newton import Asked, Settings, fillings, limited, step_from
from anatomica.guidance.mended import Mend, WrongVoxels
from anatomica.guidance.outside import certified_outside_probe
from anatomica.guidance.prediction import Prediction
from anatomica.guidance.residuals import (
    Probe,
    Voxels,
    certified_probe,
    geometric_probe,
)
from anatomica.guidance.sub_voxel import FINER, SKIP, calibre_reach, fine_domains, fine_margin
from anatomica.guidance.topological_residuals import certified_topological_probe, moved_borders
from anatomica.guidance.usual_volumes import UsualVolumes
from anatomica.measurement.goals import Goal
from anatomica.measurement.placing import Resolved, of_sample
from anatomica.prior.zoo import Model

CLOSE = 0.4
"""A sample whose largest residual is this share of its tolerance is good enough to stop."""
SLACK = (0.1, 0.55)
"""Residuals below this share of their tolerance are not changed, in the first and second half of the steps: a
label map's move in steps, and what is not asked of one leaves room for the others. Three components of a
centroid at 0.55 are still within its tolerance."""
FINE_STEPS = 8
"""Steps at most with counts on the finer grid, each of which takes eight times as long."""
SUB_VOXEL = 1.5
"""Points along an axis for each output voxel, for the sub-voxel residuals. The certificate has others, so
that what is polished is not what is certified."""
ROUNDS, ROUND_STEPS = 3, 16
"""How often the levels of named quantities are placed anew, and how many steps each such round has."""
NEARLY = 0.9
"""Levels stay if no residual is beyond this share of its tolerance when they are placed anew."""
MEND_STEPS = 10
"""Steps at most that set right what repair would change."""
SHORTEST = 0.25
"""A step is not made shorter than this share of itself."""


@torch.no_grad()
def polish(
    model: Model,
    resolved: Sequence[Resolved],
    z: Float[Tensor, "b c h w d"],
    n: int,
    settings: Settings,
    steps: int,
    goals: Sequence[Sequence[Goal]] = (),
) -> Float[Tensor, "b c h w d"]:
    """Up to `steps` Newton steps on clean latents, one sample after the other; each keeps its best.

    Sampling saw soft probabilities; a certificate counts the voxels of an n^3 label map. Here the residuals
    are those of the label map itself, and only their slopes are the soft field's; so a step may be too long:
    one that does not help is halved, and at last accepted, because a label map's residuals have steps. The
    best latent is the one with the fewest residuals beyond their tolerance, then with the smallest.

    The field's own sub-voxel moments have residuals beside the label map's, so that no step fits the rounding
    of one grid; counts are set right on the output's grid first, then on one that is twice as fine. Levels of
    named quantities (`goals`, of every sample) stay where the label map has them at first; they are placed
    anew on the polished one, which is polished again if they have moved too far.
    """
    polished = []
    for i in range(len(z)):
        own = [of_sample(r, i).to(model.scaler.mean) for r in resolved]
        named = [g for g in goals[i % len(goals)] if g.guided] if goals else []
        one = _polish_named(model, own, named, z[i : i + 1], n, settings, steps)
        if steps and any(r.wanted.betti is not None for r in own):
            finer = [_finer_counts(r) for r in own]
            one = _polish_one(model, finer, one, n, settings, min(steps, FINE_STEPS), moved=True)
        polished.append(one)
    return torch.cat(polished)


def _polish_named(
    model: Model,
    resolved: Sequence[Resolved],
    goals: Sequence[Goal],
    z: Float[Tensor, "1 c h w d"],
    n: int,
    settings: Settings,
    steps: int,
) -> Float[Tensor, "1 c h w d"]:
    """Polish, with the levels of named quantities placed anew until they stay."""
    if not goals:
        return _polish_one(model, resolved, z, n, settings, steps)
    levels = Certified.of(Prediction.of(model, z), goals, n)
    for _ in range(ROUNDS):
        z = _polish_one(model, resolved, z, n, settings, min(steps, ROUND_STEPS), levels)
        now = Prediction.of(model, z)
        levels = Certified.of(now, goals, n)
        if all(bool((x.rho.abs() <= NEARLY).all()) for x in levels.rows(now)):
            break
    return z


@torch.no_grad()
def polish_mended(
    model: Model,
    resolved: Sequence[Resolved],
    z: Float[Tensor, "b c h w d"],
    n: int,
    settings: Settings,
    mend: Mend,
    goals: Sequence[Sequence[Goal]] = (),
) -> Float[Tensor, "b c h w d"]:
    """Latents in whose label maps `mend` finds less to change, and whose targets stay met.

    Samples in which it changes nothing stay as they are. Levels of named quantities stay where they are.
    """
    mended, usual = [], UsualVolumes.of(model)
    for i in range(len(z)):
        one = z[i : i + 1]
        now = Prediction.of(model, one)
        wrong = WrongVoxels.of(now, n, mend)
        if len(wrong) or (usual is not None and usual.unusual(wrong.mass)):
            own = [_finer_counts(of_sample(r, i).to(model.scaler.mean)) for r in resolved]
            named = [g for g in goals[i % len(goals)] if g.guided] if goals else []
            levels = Certified.of(now, named, n) if named else None
            one = _polish_one(model, own, one, n, settings, MEND_STEPS, levels, mend, usual, moved=True)
        mended.append(one)
    return torch.cat(mended)


def _finer_counts(r: Resolved) -> Resolved:
    """The constraint with its counts on a grid twice as fine."""
    if r.wanted.betti is None or r.wanted.any_moment:
        return r
    a, e, g = (FINER * m for m in r.domains.grid)
    return replace(r, domains=replace(r.domains, grid=(a, e, g)))


def _polish_one(
    model: Model,
    resolved: Sequence[Resolved],
    z: Float[Tensor, "1 c h w d"],
    n: int,
    settings: Settings,
    steps: int,
    levels: Certified | None = None,
    mend: Mend | None = None,
    usual: UsualVolumes | None = None,
    moved: bool = False,
) -> Float[Tensor, "1 c h w d"]:
    """The steps of one sample; with `moved` counts must hold with their borders moved as well."""
    best, least, worst = z, (sys.maxsize, 0.0), float("inf")
    base, last = z, float("inf")
    step, scale = torch.zeros_like(z), 1.0
    seen = [(r, certified_voxels(model, r, n)) for r in resolved]
    for turn in range(steps + 1):
        z = base + scale * step
        now = Prediction.of(model, z)
        certified = (
            (p, r)
            for r, v in seen
            for p in certified_probes(now, r, v, settings, calibre_reach(now, r, n) if moved else 0.0)
        )
        found: list[Asked] = [(replace(p, held=True), r) for p, r in certified]
        named = [] if levels is None else levels.rows(now)
        asked = [*(probe.rho for probe, _ in found), *(x.rho for x in named)]
        beside = [] if mend is None else _not_as_in_patients(now, n, mend, usual)
        found += beside
        rho = torch.cat([z.new_zeros(0), *(x.flatten() for x in (*asked, *(p.rho for p, _ in beside)))])
        error = rho.square().sum().item()
        unmet = sum(int((x.abs() > 1).sum()) for x in asked)
        score = (unmet, int((rho.abs() > 1).sum()) + error / (1 + error))
        if score < least:
            best, least, worst = z, score, max(rho.abs().tolist(), default=0.0)
        if turn == steps or worst <= (CLOSE if mend is None else NEARLY):
            break
        if error < last or scale <= SHORTEST:
            slack = SLACK[0] if turn < steps // 2 else SLACK[1]
            found = [(replace(probe, rho=_beyond(probe.rho, slack)), r) for probe, r in found]
            named = [replace(x, rho=_beyond(x.rho, slack)) for x in named]
            base, last, scale = z, error, 1.0
            step = limited(step_from(now, found, settings, named), settings.radius)
        else:
            scale /= 2
    return best


def _not_as_in_patients(now: Prediction, n: int, mend: Mend, usual: UsualVolumes | None) -> list[Asked]:
    """Residuals of what repair would change, and of volumes that no patient has."""
    wrong = WrongVoxels.of(now, n, mend)
    return [*wrong.probes(now), *([] if usual is None else usual.probes(now, wrong.mass))]


def _beyond(rho: Tensor, slack: float) -> Tensor:
    """What of the residuals is beyond the slack."""
    return rho.sign() * (rho.abs() - slack).clamp_min(0)


def certified_voxels(model: Model, r: Resolved, n: int) -> Voxels | None:
    """What the certificate will slice of an n^3 label map, if the constraint has moments."""
    return Voxels.of(r.domains.to(model.scaler.mean).points()[None], n) if r.wanted.any_moment else None


def certified_probes(
    now: Prediction, r: Resolved, voxels: Voxels | None, settings: Settings, reach: float = 0.0
) -> list[Probe]:
    """One sample's residuals as the certificate will measure them on a label map's voxels.

    Counts have residuals of the border moved by `reach` as well, if that is not zero.
    """
    found, r = [], r.to(now.z)
    X = r.domains.points()[None]
    if voxels is not None:
        S = now.probability(voxels.centres[None], r, "margin")
        probe, mass = certified_probe(S, voxels, r, now.model.frame)
        found += [probe, sub_voxel_probe(now, r, voxels.n), *fillings(now, mass, X, r, settings)]
    if r.wanted.betti is not None:
        for k in r.valid_domains:
            found += _count_probes(now, r, k, X[:, k], settings, reach)
    return [*found, *certified_outside_probe(now, r)]


def _count_probes(
    now: Prediction, r: Resolved, k: int, X: Float[Tensor, "1 a e g 3"], settings: Settings, reach: float
) -> list[Probe]:
    """The residuals of one domain's counts, and of those with the border moved both ways by `reach`."""
    betti = r.wanted.betti
    assert betti is not None
    S = now.margin(X, r, SKIP if reach else settings.skip)
    found = [certified_topological_probe(S, X, betti)]
    if not found[0].rho.shape[1] and settings.skip and not reach:
        # It looks met, but a speck of one voxel may lie between the points that were decoded.
        S = now.margin(X, r, 0.0)
        found = [certified_topological_probe(S, X, betti)]
    if reach:
        spacing = [float(s) / m for s, m in zip(r.domains.s[k].tolist(), r.domains.grid, strict=True)]
        found += [
            certified_topological_probe(m.S[None], X, betti, m.source)
            for m in moved_borders(S[0], spacing, reach)
        ]
    return found


def sub_voxel_probe(now: Prediction, r: Resolved, n: int) -> Probe:
    """One sample's residuals of the field's own moments, which have no output grid."""
    fine = replace(r, domains=fine_domains(r, n, SUB_VOXEL, SUB_VOXEL))
    S = fine_margin(now, fine, fine.domains)
    return geometric_probe(S, fine.domains.points()[None], fine, now.model.frame, "margin", hard=True)
