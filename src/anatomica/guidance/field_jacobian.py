"""The derivative of residuals by the latent, through the neural field, by one backward pass for all."""

from __future__ import annotations

import math
from collections.abc import Sequence

import torch
from jaxtyping import Float, Int64
from torch import Tensor

from anatomica.guidance.prediction import Prediction, inside
from anatomica.guidance.residuals import Probe
from anatomica.measurement.parse import membership
from anatomica.measurement.placing import Resolved, Tissues
from anatomica.prior.field import Field, corners, slice_trilinear

SCATTER_POINTS = 1024
"""Points whose derivatives are scattered at a time, so that they stay in the cache."""


def jacobian(now: Prediction, probe: Probe, r: Resolved | Tissues) -> Float[Tensor, "b r D"]:
    """d rho / d z of one probe.

    A point's S depends on the latent through its slice of the features: d S / d slice is computed once, then
    weighted a residual and scattered to the eight parts of cells around the point, from the parts to their
    cells, and from each cell through the bottleneck to the 27 cells that it reads.
    """
    model, z, features = now.model, now.z, now.features
    field = model.autoencoder.field
    with torch.enable_grad():
        sliced = slice_trilinear(features, probe.points).detach().requires_grad_()
        heat = r.temperature if probe.temperature is None else probe.temperature
        S = membership(field.decode(sliced, probe.points, probe.held), r.selection, probe.union, heat)
        (by_slice,) = torch.autograd.grad((S * inside(probe.points)).sum(), sliced)
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
    for points in torch.arange(len(parts), device=parts.device).split(SCATTER_POINTS):
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
