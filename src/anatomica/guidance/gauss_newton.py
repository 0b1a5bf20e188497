"""A solver without weights: damped minimum-norm steps on the clean latent, in units of the tolerances."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

import torch
from jaxtyping import Float, Int64
from torch import Tensor

from anatomica.anatomy.catalogue import anatomy
from anatomica.anatomy.frame import Frame
from anatomica.guidance.adaptive_grid import sample_where_it_varies
from anatomica.guidance.residuals import (
    EMPTY_TEMPERATURE,
    Probe,
    filling_probe,
    geometric_probe,
    topological_probe,
)
from anatomica.guidance.substructures import temperature
from anatomica.measurement.domains.domain import Domains
from anatomica.measurement.moments import measure_moments
from anatomica.measurement.parse import Union, membership
from anatomica.measurement.placing import Resolved
from anatomica.prior.field import CHUNK_POINTS, Field, corners, slice_trilinear
from anatomica.prior.zoo import Model

SCATTER_POINTS = 1024
"""Points whose derivatives are scattered at a time, so that they stay in the cache."""


@dataclass(frozen=True)
class Settings:
    """`damping` is the share of J J^T's mean diagonal that is added to it; `lead` how much further than to
    their end steps in noise go, `reach` how far at most (RMS of the standardised latent, in units of sigma)
    and `radius` how far at most without noise; `sharp` the sigma from which on shape and spread are asked
    for; `inner` the number of steps at each noise level; `union` how geometry sees several tissues; `skip`
    the variation below which topology does not decode every point; `grid` the most points an axis at which
    geometry is measured while sampling (the last polish uses the constraint's own grid)."""

    damping: float = 0.003
    lead: float = 1.0
    reach: float = 0.3
    radius: float = 0.08
    sharp: float = 0.3
    inner: int = 1
    union: Union = "sum"
    skip: float = 0.05
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
    sharp = [coarsened(r, settings.grid) for r in resolved]
    blurred = [first_moments(r) for r in sharp]

    def correct(z_0: Float[Tensor, "b c h w d"], sigma: Float[Tensor, " b"]) -> Float[Tensor, "b c h w d"]:
        asked = sharp if sigma.max() <= settings.sharp else blurred
        for _ in range(settings.inner):
            z_0 = z_0 + newton_step(model, asked, frame, z_0, sigma, settings)
        return z_0

    return correct


def coarsened(r: Resolved, grid: int) -> Resolved:
    """The same constraint with at most `grid` points an axis; moments hardly change, topology would."""
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
    return replace(r, wanted=replace(r.wanted, shape=None, spread=None))


@torch.no_grad()
def newton_step(
    model: Model,
    resolved: Sequence[Resolved],
    frame: Frame,
    z: Float[Tensor, "b c h w d"],
    sigma: Float[Tensor, " b"],
    settings: Settings,
) -> Float[Tensor, "b c h w d"]:
    """One damped minimum-norm step at clean standardised latents that were predicted in noise of level sigma.

    A sampler moves its noisy latent by only a part of what a prediction changes, and the denoiser takes back
    of that what is no anatomy: an aorta that is pulled at five planes comes back whole, and nearer to them.
    So steps in noise lead beyond their end, up to 1 + lead times. Were they no longer than needed, the last
    steps would have to do the work where no denoiser comes after them, and bend the aorta at its planes.
    """
    features = model.autoencoder.field.prepare(model.scaler.restore(z))
    found = [(probe, r) for r in resolved for probe in probes(model, r, frame, features, settings)]
    sigma = sigma.to(z).view(-1, 1, 1, 1, 1)
    step = (1 + settings.lead * sigma / (1 + sigma)) * step_from(model, z, features, found, settings)
    return limited(step, (settings.reach * sigma).clamp_min(settings.radius))


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
    if wanted.any_moment:
        S = probabilities(model, features, X.reshape(batch, -1, 3), r, settings.union).reshape(X.shape[:-1])
        found.append(geometric_probe(S, X, r, frame, settings.union))
        found += fillings(model, features, measure_moments(S, domains).mass, X, r, settings)
    if wanted.betti is not None:
        for k in valid_domains(domains):
            S = margins(model, features, X[:, k], r, settings)
            found.append(topological_probe(S, X[:, k], wanted.betti))
    return found


def fillings(
    model: Model, features: Tensor, mass: Tensor, X: Tensor, r: Resolved, settings: Settings
) -> list[Probe]:
    """The probe of empty domains, if there are any."""

    def probability(points: Tensor) -> Tensor:
        logits = model.autoencoder.field.at(features, points)
        return membership(logits, r.selection, settings.union, EMPTY_TEMPERATURE)

    probe = filling_probe(mass, X, r, probability, settings.union)
    return [] if probe is None else [probe]


def margins(
    model: Model, features: Tensor, X: Float[Tensor, "b a e g 3"], r: Resolved, settings: Settings
) -> Float[Tensor, "b a e g"]:
    """The structure's margin on one domain's grid, decoded where it varies."""

    def sampled(sample: int) -> Tensor:
        at = features[sample : sample + 1]
        margin = lambda points: probabilities(model, at, points[None], r, "margin")[0]  # noqa: E731
        return sample_where_it_varies(margin, X[sample], settings.skip, model.latent_shape[-1])

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

    A point's S depends on the latent through its slice of the features: d S / d slice is computed once, then
    weighted a residual and scattered to the eight parts of cells around the point, from the parts to their
    cells, and from each cell through the bottleneck to the 27 cells that it reads.
    """
    field = model.autoencoder.field
    with torch.enable_grad():
        sliced = slice_trilinear(features, probe.points).detach().requires_grad_()
        heat = temperature(r) if probe.temperature is None else probe.temperature
        S = membership(field.decode(sliced, probe.points), r.selection, probe.union, heat)
        inside = ((probe.points >= 0) & (probe.points <= 1)).all(dim=-1)
        (by_slice,) = torch.autograd.grad((S * inside).sum(), sliced)
    taps = (field.bottleneck.weight.detach() * model.scaler.std.view(1, -1, 1, 1, 1)).flatten(1)
    parts, share = corners(probe.points, features.shape[1:4])
    # Every sample's every block has a grid of its own.
    blocks = probe.rho.shape[1] // probe.slope.shape[1]
    own = blocks * torch.arange(len(z), device=z.device)[:, None] + probe.owner
    parts = own[..., None] * math.prod(features.shape[1:4]) + parts
    slope = probe.slope.transpose(0, 1).flatten(1)
    touched, G = _by_part(parts.flatten(0, 1), share.flatten(0, 1), slope, by_slice.flatten(0, 1))
    touched, G = _by_cell(touched, G, field, z.shape[2:])
    block, cell = touched // math.prod(z.shape[2:]), touched % math.prod(z.shape[2:])
    bend = field.bottleneck_slope(model.scaler.restore(z), block // blocks, cell)
    G = (G * bend[:, None]) @ taps
    J = _spread(block, cell, G.unflatten(-1, (z.shape[1], 27)), z.shape[2:], blocks * len(z))
    return J.view(*probe.rho.shape, -1)


def _by_part(
    parts: Int64[Tensor, "p 8"],
    share: Float[Tensor, "p 8"],
    slope: Float[Tensor, "e p"],
    by_slice: Float[Tensor, "p k"],
) -> tuple[Int64[Tensor, " t"], Float[Tensor, "t e k"]]:
    """The parts that the points read, and d rho / d features in each: slope * share * by_slice, summed."""
    touched, place = parts.unique(return_inverse=True)
    G = slope.new_zeros(len(touched), len(slope) * by_slice.shape[1])
    for points in torch.arange(len(parts)).split(SCATTER_POINTS):
        rows = (slope[:, points].T[:, :, None] * by_slice[points][:, None]).flatten(1)
        for corner in range(8):
            G.index_add_(0, place[points, corner], share[points, corner, None].to(rows) * rows)
    return touched, G.view(len(touched), len(slope), by_slice.shape[1])


def _by_cell(
    parts: Int64[Tensor, " t"], G: Float[Tensor, "t e k"], field: Field, shape: Sequence[int]
) -> tuple[Int64[Tensor, " u"], Float[Tensor, "u e j"]]:
    """The cells of the parts, and d rho / d bottleneck in each: every part has its own matrix."""
    (_, w, d), n = shape, field.split
    matrices = field.from_features.weight.detach().view(n**3, field.hidden, -1)
    # A block's x goes on where that of the block before it ended.
    z, y, x = parts % (n * d), parts // (n * d) % (n * w), parts // (n * n * w * d)
    kind = (x % n * n + y % n) * n + z % n
    touched, place = (((x // n) * w + y // n) * d + z // n).unique(return_inverse=True)
    H = G.new_zeros(len(touched), G.shape[1], matrices.shape[2])
    for i, matrix in enumerate(matrices):
        own = (kind == i).nonzero()[:, 0]
        H.index_add_(0, place[own], G[own] @ matrix)
    return touched, H


def _spread(
    block: Int64[Tensor, " t"],
    cell: Int64[Tensor, " t"],
    G: Float[Tensor, "t e c 27"],
    shape: Sequence[int],
    blocks: int,
) -> Float[Tensor, "r D"]:
    """Each cell's 27 taps added to the cells that they read, in every block's own grid."""
    h, w, d = shape
    J = G.new_zeros(blocks * (h + 2) * (w + 2) * (d + 2), *G.shape[1:3])
    first = ((block * (h + 2) + cell // (w * d)) * (w + 2) + cell // d % w) * (d + 2) + cell % d
    for tap in range(27):
        J.index_add_(0, first + ((tap // 9) * (w + 2) + tap // 3 % 3) * (d + 2) + tap % 3, G[..., tap])
    J = J.view(blocks, h + 2, w + 2, d + 2, *G.shape[1:3])[:, 1:-1, 1:-1, 1:-1]
    return J.permute(0, 4, 5, 1, 2, 3).flatten(2).flatten(0, 1)


def _solve(rho: Float[Tensor, "b r"], J: Float[Tensor, "b r D"], settings: Settings) -> Float[Tensor, "b D"]:
    """-J^T (J J^T + mu I)^-1 rho."""
    A = (J @ J.mT).double()
    diagonal = A.diagonal(dim1=-2, dim2=-1)
    mu = settings.damping * diagonal.mean(dim=-1, keepdim=True) + 1e-12
    A = A + torch.diag_embed(mu.expand_as(diagonal))
    weights = torch.linalg.solve(A, -rho.double()).to(rho)
    return (weights[:, None] @ J)[:, 0]


def limited(step: Float[Tensor, "b c h w d"], radius: float | Tensor) -> Float[Tensor, "b c h w d"]:
    """The step, its RMS no larger than the radius."""
    rms = step.square().mean(dim=(1, 2, 3, 4), keepdim=True).sqrt()
    return step * (radius / torch.maximum(rms, torch.as_tensor(radius).to(rms)))
