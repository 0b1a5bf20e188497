"""The last steps: on the finished latent, against the label map as it will be certified."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from jaxtyping import Float
from torch import Tensor

from anatomica.frame import Frame
from anatomica.gauss_newton import Settings, margins, probabilities, step_from, valid_domains
from anatomica.labels import anatomy
from anatomica.models.field import corners
from anatomica.models.zoo import Model
from anatomica.residuals import Probe, certified_probe, topological_probe
from anatomica.resolve import Resolved

CLOSE = 0.4
"""A residual vector shorter than this, in tolerances, is good enough to stop."""

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
    """Up to `steps` Newton steps on clean latents; each sample keeps its best.

    Sampling saw soft probabilities; a certificate counts the voxels of an n^3 label map. Here the residuals
    are those of the label map itself, and only their slopes are the soft field's; so a step may be too long:
    one that does not help is halved, and at last accepted, because a label map's residuals have steps.
    """
    frame = Frame.model(anatomy(model.anatomy), model.n)
    best, least = z, z.new_full((len(z),), torch.inf)
    base, last = best, least
    step, scale = torch.zeros_like(z), z.new_ones(len(z))
    for turn in range(steps + 1):
        z = base + _wide(scale) * step
        features = model.autoencoder.field.prepare(model.scaler.restore(z))
        found = [(p, r) for r in resolved for p in certified_probes(model, r, frame, features, n, settings)]
        rho = torch.cat([probe.rho for probe, _ in found], dim=1)
        error = rho.square().sum(dim=1)
        best = torch.where(_wide(error < least), z, best)
        least = torch.minimum(error, least)
        if turn == steps or bool((least < CLOSE**2).all()):
            break
        accept = (error < last) | (scale <= SHORTEST)
        base, last = torch.where(_wide(accept), z, base), torch.where(accept, error, last)
        if accept.any():
            step = torch.where(_wide(accept), step_from(model, z, features, found, settings), step)
        scale = torch.where(accept, 1.0, scale / 2)
    return best


def _wide(x: Tensor) -> Tensor:
    return x.view(-1, 1, 1, 1, 1)


def certified_probes(
    model: Model, r: Resolved, frame: Frame, features: Tensor, n: int, settings: Settings
) -> list[Probe]:
    """A constraint's residuals as the certificate will measure them on n^3 voxels."""
    batch, found = len(features), []
    domains = r.domains.to(model.scaler.mean)
    X = domains.points()
    X = X if X.dim() == 6 else X.expand(batch, *X.shape)
    if any(x is not None for x in (r.wanted.mass, r.wanted.centroid, r.wanted.shape)):
        points = X.flatten(1, -2)
        cells, share = corners(points, (n, n, n))
        share = share * ((points >= 0) & (points <= 1)).all(dim=-1, keepdim=True)
        voxels, place = cells.unique(return_inverse=True)
        centres = (torch.stack([voxels // n**2, voxels // n % n, voxels % n], -1) + 0.5) / n
        S = probabilities(model, features, centres.expand(batch, -1, 3), r, "margin")
        found.append(certified_probe(S, centres, place, share, r, frame))
    if r.wanted.betti is not None:
        for k in valid_domains(domains):
            S = margins(model, features, X[:, k], r, settings)
            found.append(topological_probe(S, X[:, k], r, certified=True))
    return found
