"""The last steps: on the finished latent, against the label map as it will be certified."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import torch
from jaxtyping import Float
from torch import Tensor

from anatomica.frame import Frame
from anatomica.gauss_newton import (
    Settings,
    fillings,
    limited,
    margins,
    probabilities,
    step_from,
    valid_domains,
)
from anatomica.labels import anatomy
from anatomica.models.field import corners
from anatomica.models.zoo import Model
from anatomica.moments import measure_moments
from anatomica.residuals import Probe, certified_probe, certified_topological_probe
from anatomica.resolve import Resolved, of_sample

CLOSE = 0.4
"""A sample whose largest residual is this share of its tolerance is good enough to stop."""
SLACK = (0.1, 0.55)
"""Residuals below this share of their tolerance are left alone, in the first and second half of the steps: a
label map's move in steps, and what is not asked of one leaves room for the others. Three components of a
centroid at 0.55 are still within its tolerance."""
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
) -> Float[Tensor, "b c h w d"]:
    """Up to `steps` Newton steps on clean latents, one sample after the other; each keeps its best.

    Sampling saw soft probabilities; a certificate counts the voxels of an n^3 label map. Here the residuals
    are those of the label map itself, and only their slopes are the soft field's; so a step may be too long:
    one that does not help is halved, and at last accepted, because a label map's residuals have steps. The
    best latent is the one with the fewest residuals beyond their tolerance, then with the smallest.
    """
    own = ([of_sample(r, i) for r in resolved] for i in range(len(z)))
    return torch.cat([_polish_one(model, r, z[i : i + 1], n, settings, steps) for i, r in enumerate(own)])


def _polish_one(
    model: Model,
    resolved: Sequence[Resolved],
    z: Float[Tensor, "1 c h w d"],
    n: int,
    settings: Settings,
    steps: int,
) -> Float[Tensor, "1 c h w d"]:
    frame = Frame.model(anatomy(model.anatomy), model.n)
    best, least, worst = z, float("inf"), float("inf")
    base, last = z, float("inf")
    step, scale = torch.zeros_like(z), 1.0
    for turn in range(steps + 1):
        z = base + scale * step
        features = model.autoencoder.field.prepare(model.scaler.restore(z))
        found = [(p, r) for r in resolved for p in certified_probes(model, r, frame, features, n, settings)]
        rho = torch.cat([probe.rho.flatten() for probe, _ in found])
        error = rho.square().sum().item()
        score = int((rho.abs() > 1).sum()) + error / (1 + error)
        if score < least:
            best, least, worst = z, score, max(rho.abs().tolist(), default=0.0)
        if turn == steps or worst <= CLOSE:
            break
        if error < last or scale <= SHORTEST:
            slack = SLACK[0] if turn < steps // 2 else SLACK[1]
            found = [(replace(probe, rho=_beyond(probe.rho, slack)), r) for probe, r in found]
            base, last, scale = z, error, 1.0
            step = limited(step_from(model, z, features, found, settings), settings.radius)
        else:
            scale /= 2
    return best


def _beyond(rho: Tensor, slack: float) -> Tensor:
    """What of the residuals is beyond the slack."""
    return rho.sign() * (rho.abs() - slack).clamp_min(0)


def certified_probes(
    model: Model, r: Resolved, frame: Frame, features: Tensor, n: int, settings: Settings
) -> list[Probe]:
    """A constraint's residuals as the certificate will measure them on n^3 voxels."""
    batch, found = len(features), []
    domains = r.domains.to(model.scaler.mean)
    X = domains.points()
    X = X if X.dim() == 6 else X.expand(batch, *X.shape)
    if r.wanted.any_moment:
        points = X.flatten(1, -2)
        cells, share = corners(points, (n, n, n))
        share = share * ((points >= 0) & (points <= 1)).all(dim=-1, keepdim=True)
        voxels, place = cells.unique(return_inverse=True)
        centres = (torch.stack([voxels // n**2, voxels // n % n, voxels % n], -1) + 0.5) / n
        S = probabilities(model, features, centres.expand(batch, -1, 3), r, "margin")
        found.append(certified_probe(S, centres, place, share, r, frame))
        hard = ((S > 0.5).to(S).gather(1, place.flatten(1)).view(place.shape) * share).sum(-1)
        mass = measure_moments(hard.view(X.shape[:-1]), domains).mass
        found += fillings(model, features, mass, X, r, settings)
    if r.wanted.betti is not None:
        for k in valid_domains(domains):
            S = margins(model, features, X[:, k], r, settings)
            probe = certified_topological_probe(S, X[:, k], r.wanted.betti)
            if not probe.rho.shape[1] and settings.skip:
                # It looks met, but a speck of one voxel may lie between the points that were decoded.
                S = margins(model, features, X[:, k], r, replace(settings, skip=0.0))
                probe = certified_topological_probe(S, X[:, k], r.wanted.betti)
            found.append(probe)
    return found
