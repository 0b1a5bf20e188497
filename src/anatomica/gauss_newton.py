"""A solver without weights: damped minimum-norm steps on the clean latent, in units of the tolerances."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

import torch
from jaxtyping import Float, Int64
from torch import Tensor

from anatomica.domains.domain import Domains
from anatomica.frame import Frame
from anatomica.labels import anatomy
from anatomica.models.field import CHUNK_POINTS, corners, slice_trilinear
from anatomica.models.zoo import Model
from anatomica.parse import Union, membership
from anatomica.residuals import Probe, geometric_probe, topological_probe
from anatomica.resolve import Resolved
from anatomica.sparse import sample_where_it_varies
from anatomica.substructures import temperature

SCATTER_POINTS = 1024
"""Points whose derivatives are scattered at a time, so that they stay in the cache."""


@dataclass(frozen=True)
class Settings:
    """`damping` is the share of J J^T's mean diagonal that is added to it; `radius` the largest RMS change of
    a standardised latent a step, which keeps early, noisy predictions from being torn apart; `inner` the
    number of steps at each noise level; `union` how geometry sees several tissues; `skip` the variation below
    which topology does not decode every point; `grid` the most points an axis at which geometry is measured
    while sampling (the last polish uses the constraint's own grid)."""

    damping: float = 0.003
    radius: float = 0.08
    inner: int = 1
    union: Union = "sum"
    skip: float = 0.02
    grid: int = 16


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

    resolved = [coarsened(r, settings.grid) for r in resolved]

    def correct(z_0: Float[Tensor, "b c h w d"], sigma: Float[Tensor, " b"]) -> Float[Tensor, "b c h w d"]:
        for _ in range(settings.inner):
            z_0 = z_0 + newton_step(model, resolved, frame, z_0, settings)
        return z_0

    return correct


def coarsened(r: Resolved, grid: int) -> Resolved:
    """The same constraint with at most `grid` points an axis; moments hardly change, topology would."""
    if r.wanted.betti is not None or max(r.domains.grid) <= grid:
        return r
    a, e, g = (min(n, grid) for n in r.domains.grid)
    return replace(r, domains=replace(r.domains, grid=(a, e, g)))


@torch.no_grad()
def newton_step(
    model: Model,
    resolved: Sequence[Resolved],
    frame: Frame,
    z: Float[Tensor, "b c h w d"],
    settings: Settings,
) -> Float[Tensor, "b c h w d"]:
    """One damped minimum-norm step at clean standardised latents."""
    features = model.autoencoder.field.prepare(model.scaler.restore(z))
    found = [(probe, r) for r in resolved for probe in probes(model, r, frame, features, settings)]
    return step_from(model, z, features, found, settings)


def step_from(
    model: Model, z: Tensor, features: Tensor, found: Sequence[tuple[Probe, Resolved]], settings: Settings
) -> Float[Tensor, "b c h w d"]:
    """The step that removes the probes' residuals."""
    acting = [(probe, r) for probe, r in found if probe.rho.shape[1] and probe.points.shape[1]]
    if not acting:
        return torch.zeros_like(z)
    rho = torch.cat([probe.rho for probe, _ in acting], dim=1)
    J = torch.cat([jacobian(model, z, features, probe, r) for probe, r in acting], dim=1)
    return _solve(rho, J, settings).view_as(z)


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
        grids = [X[:, k] for k in valid_domains(domains)]
        found += [topological_probe(margins(model, features, x, r, settings), x, r) for x in grids]
    return found


def margins(
    model: Model, features: Tensor, X: Float[Tensor, "b a e g 3"], r: Resolved, settings: Settings
) -> Float[Tensor, "b a e g"]:
    """The structure's margin on one domain's grid, decoded where it varies."""

    def sampled(sample: int) -> Tensor:
        at = features[sample : sample + 1]
        margin = lambda points: probabilities(model, at, points[None], r, "margin")[0]  # noqa: E731
        return sample_where_it_varies(margin, X[sample], settings.skip)

    return torch.stack([sampled(i) for i in range(len(X))])


def valid_domains(domains: Domains) -> list[int]:
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
    """d rho / d z of one probe.

    The features are a 3^3 convolution of the latent, so a point's S depends on z through the 27 c numbers
    around each of its eight cells: they are computed once a point, and weighted and scattered a residual.
    """
    field = model.autoencoder.field
    with torch.enable_grad():
        sliced = slice_trilinear(features, probe.points).detach().requires_grad_()
        S = membership(field.decode(sliced, probe.points), r.selection, probe.union, temperature(r))
        inside = ((probe.points >= 0) & (probe.points <= 1)).all(dim=-1)
        (by_slice,) = torch.autograd.grad((S * inside).sum(), sliced)
    weight = field.latent_weight().detach() * model.scaler.std.view(1, -1, 1, 1, 1)
    by_tap = by_slice @ weight.flatten(1)
    shape = features.shape[1:4]
    cells, share = corners(probe.points, shape)
    count = 1 if probe.owner is None else r.domains.count
    owner = torch.zeros_like(cells[0, :, 0]) if probe.owner is None else probe.owner
    places = [(owner == k).nonzero()[:, 0] for k in range(count)]
    J = []
    for where, weights, slope, taps in zip(cells, share, probe.slope, by_tap, strict=True):
        blocks = zip(places, slope.chunk(count), strict=True)
        rows = [_scatter(where[p], weights[p], s[:, p], taps[p], shape, z.shape[1]) for p, s in blocks]
        J.append(torch.cat(rows))
    return torch.stack(J)


def _scatter(
    cells: Int64[Tensor, "p 8"],
    share: Float[Tensor, "p 8"],
    slope: Float[Tensor, "r p"],
    by_tap: Float[Tensor, "p t"],
    shape: Sequence[int],
    channels: int,
) -> Float[Tensor, "r D"]:
    """Sum over points of slope * share * by_tap at each cell's 27 neighbours, a residual each."""
    count, (h, w, d) = len(slope), shape
    touched, place = cells.unique(return_inverse=True)
    G = slope.new_zeros(len(touched), count * by_tap.shape[1])
    for points in torch.arange(len(cells)).split(SCATTER_POINTS):
        rows = (slope[:, points].T[:, :, None] * by_tap[points][:, None]).flatten(1)
        for corner in range(8):
            G.index_add_(0, place[points, corner], share[points, corner, None].to(rows) * rows)
    G = G.view(len(touched), count, channels, 27)
    J = slope.new_zeros((h + 2) * (w + 2) * (d + 2), count, channels)
    x, y, k = touched // (w * d), touched // d % w, touched % d
    for tap in range(27):
        at = ((x + tap // 9) * (w + 2) + y + tap // 3 % 3) * (d + 2) + k + tap % 3
        J.index_add_(0, at, G[..., tap])
    J = J.view(h + 2, w + 2, d + 2, count, channels)[1:-1, 1:-1, 1:-1]
    return J.permute(3, 4, 0, 1, 2).flatten(1)


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
