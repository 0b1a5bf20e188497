"""A solver without weights: damped minimum-norm steps on the clean latent, in units of the tolerances."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import torch
from jaxtyping import Float
from torch import Tensor

from anatomica.domains.domain import Domains
from anatomica.frame import Frame
from anatomica.labels import anatomy
from anatomica.models.field import CHUNK_POINTS, slice_trilinear
from anatomica.models.zoo import Model
from anatomica.parse import Union, membership
from anatomica.residuals import Probe, geometric_probe, topological_probe
from anatomica.resolve import Resolved
from anatomica.sparse import sample_where_it_varies
from anatomica.substructures import temperature


@dataclass(frozen=True)
class Settings:
    """`damping` is the share of J J^T's mean diagonal that is added to it; `radius` the largest RMS change of
    a standardised latent a step, which keeps early, noisy predictions from being torn apart; `inner` the
    number of steps at each noise level; `union` how geometry sees several tissues; `skip` the variation below
    which topology does not decode every point."""

    damping: float = 0.03
    radius: float = 0.08
    inner: int = 1
    union: Union = "sum"
    skip: float = 0.02


def gauss_newton(
    model: Model, resolved: Sequence[Resolved], settings: Settings = Settings()
) -> Callable[[Tensor, Tensor], Tensor]:
    """correct(z_0, sigma) -> z_0 nearer to the targets, for `guidance.corrected`.

    With residuals rho in units of their tolerances and J = d rho / d z, the step is
    -J^T (J J^T + mu I)^-1 rho, the smallest change of the latent that removes the residuals, damped so that
    conflicting ones stay finite. No backward pass through the U-Net, and one through the field: each S_i
    depends on the latent through its own slice of the features, so d S_i / d slice is computed once and every
    residual's gradient is a reweighted scatter of it.
    """
    frame = Frame.model(anatomy(model.anatomy), model.n)

    def correct(z_0: Float[Tensor, "b c h w d"], sigma: Float[Tensor, " b"]) -> Float[Tensor, "b c h w d"]:
        for _ in range(settings.inner):
            z_0 = z_0 + newton_step(model, resolved, frame, z_0, settings)
        return z_0

    return correct


def newton_step(
    model: Model,
    resolved: Sequence[Resolved],
    frame: Frame,
    z: Float[Tensor, "b c h w d"],
    settings: Settings,
) -> Float[Tensor, "b c h w d"]:
    """One damped minimum-norm step at clean standardised latents."""
    rho, J = [], []
    with torch.no_grad():
        features = model.autoencoder.field.prepare(model.scaler.restore(z))
    for r in resolved:
        for probe in probes(model, r, frame, features, settings):
            if probe.rho.shape[1] and probe.points.shape[1]:
                rho.append(probe.rho)
                J.append(jacobian(model, z, features, probe, r))
    if not rho:
        return torch.zeros_like(z)
    return _solve(torch.cat(rho, dim=1), torch.cat(J, dim=1), settings).view_as(z)


def probes(model: Model, r: Resolved, frame: Frame, features: Tensor, settings: Settings) -> list[Probe]:
    """A constraint's residuals at the current prediction: geometric, topological or both.

    Topology is that of the margin, whose level 1/2 is the label map's border; where it does not vary it is
    not decoded.
    """
    batch = len(features)
    domains = r.domains.to(model.scaler.mean)
    X = domains.points()
    X = X if X.dim() == 6 else X.expand(batch, *X.shape)
    wanted, found = r.wanted, []
    if any(x is not None for x in (wanted.mass, wanted.centroid, wanted.shape)):
        S = probabilities(model, features, X.reshape(batch, -1, 3), r, settings.union)
        found.append(geometric_probe(S.reshape(X.shape[:-1]), X, r, frame, settings.union))
    if wanted.betti is not None:
        for k in _valid(domains):
            S = torch.stack([_margin(model, features[i : i + 1], X[i, k], r, settings) for i in range(batch)])
            found.append(topological_probe(S, X[:, k], r))
    return found


def _margin(model: Model, features: Tensor, X: Tensor, r: Resolved, settings: Settings) -> Tensor:
    def at(points: Tensor) -> Tensor:
        return probabilities(model, features, points[None], r, "margin")[0]

    return sample_where_it_varies(at, X, settings.skip)


def _valid(domains: Domains) -> list[int]:
    return domains.valid.reshape(-1, domains.count).all(dim=0).nonzero()[:, 0].tolist()


@torch.no_grad()
def probabilities(
    model: Model, features: Tensor, points: Tensor, r: Resolved, union: Union
) -> Float[Tensor, "b p"]:
    """The structure's probability at points, decoded in cache-sized chunks; background outside the cube."""
    parts = [
        membership(model.autoencoder.field.at(features, p), r.selection, union, temperature(r))
        for p in points.split(max(1, CHUNK_POINTS // len(points)), dim=1)
    ]
    inside = ((points >= 0) & (points <= 1)).all(dim=-1)
    return torch.cat(parts, dim=1) * inside


def jacobian(model: Model, z: Tensor, features: Tensor, probe: Probe, r: Resolved) -> Float[Tensor, "b r D"]:
    """d rho / d z of one probe."""
    field = model.autoencoder.field
    b, count = probe.rho.shape
    with torch.enable_grad():
        sliced = slice_trilinear(features, probe.points).detach().requires_grad_()
        logits = field.decode(sliced, probe.points)
        S = membership(logits, r.selection, probe.union, temperature(r))
        inside = ((probe.points >= 0) & (probe.points <= 1)).all(dim=-1)
        (by_slice,) = torch.autograd.grad((S * inside).sum(), sliced)
        # prepare and slice are linear in z: all residuals go back through them together, as one batch.
        many = z.detach().repeat_interleave(count, dim=0).requires_grad_()
        again = slice_trilinear(
            field.prepare(model.scaler.restore(many)), probe.points.repeat_interleave(count, dim=0)
        )
        pull = (probe.slope[..., None] * by_slice[:, None]).flatten(0, 1)
        (J,) = torch.autograd.grad(again, many, pull)
    return J.reshape(b, count, -1)


def _solve(rho: Float[Tensor, "b r"], J: Float[Tensor, "b r D"], settings: Settings) -> Float[Tensor, "b D"]:
    """-J^T (J J^T + mu I)^-1 rho, no longer than the radius."""
    A = (J @ J.mT).double()
    diagonal = A.diagonal(dim1=-2, dim2=-1)
    mu = settings.damping * diagonal.mean(dim=-1, keepdim=True) + 1e-12
    A = A + torch.diag_embed(mu.expand_as(diagonal))
    weights = torch.linalg.solve(A, -rho.double()).to(rho)
    step = (weights[:, None] @ J)[:, 0]
    rms = step.square().mean(dim=-1, keepdim=True).sqrt()
    return step * (settings.radius / rms.clamp_min(settings.radius))
