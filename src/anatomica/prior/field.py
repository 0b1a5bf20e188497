"""The neural field decoder F of Anatomica-L: logits at any points of the cube, straight from the latent."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from typing import Any

import torch
import torch.nn.functional as F
from jaxtyping import Float, Int64, UInt8
from torch import Tensor, nn
from torch.autograd.function import once_differentiable

from anatomica.prior.column import ColumnLayer
from anatomica.prior.layers import Conv3d
from anatomica.prior.presets import FieldConfig


class FourierFeatures(nn.Module):
    """Random Fourier features (cos 2πBr, sin 2πBr), B drawn once from N(0, bandwidth^2) and kept."""

    frequencies: Tensor

    def __init__(self, dim: int, bandwidth: float) -> None:
        super().__init__()
        generator = torch.Generator().manual_seed(0)
        frequencies = torch.empty(3, dim)
        if not frequencies.is_meta:  # random numbers without memory would import all of torch's compiler
            frequencies.normal_(generator=generator).mul_(bandwidth)
        self.register_buffer("frequencies", frequencies)

    def forward(self, r: Float[Tensor, "*p 3"]) -> Float[Tensor, "*p e"]:
        angle = (2 * math.pi) * (r @ self.frequencies)
        return torch.cat([angle.cos(), angle.sin()], dim=-1)


class Field(nn.Module):
    """Bottleneck convolution with SiLU, trilinear slice at the points, Fourier features, MLP, logits.

    The MLP's first layer acts on [slice(features), fourier(r)]. Slicing is linear, so the features' half of
    that layer is applied on the latent grid, before slicing: the same function with one matrix product
    less per point, and the bottleneck may be wide at no cost per point. With `split` s that half is another
    matrix in each of a cell's s^3 parts, and slicing is between the parts' centres: detail finer than a cell,
    again at no cost per point. `prepare` does all that needs no points, once per latent; `at` does the rest,
    once per set of points.
    """

    def __init__(self, latent_channels: int, classes: int, config: FieldConfig, column: bool = False) -> None:
        super().__init__()
        hidden = config.hidden
        self.bottleneck = Conv3d(latent_channels, config.channels, 3, padding=1)
        self.fourier = FourierFeatures(config.fourier, config.bandwidth)
        self.from_features = nn.Linear(config.channels, config.split**3 * hidden, bias=False)
        self.from_position = nn.Linear(2 * config.fourier, hidden)
        layers: list[nn.Module] = [nn.LayerNorm(hidden), nn.ReLU()]
        for _ in range(config.layers - 1):
            layers += [nn.Linear(hidden, hidden), nn.LayerNorm(hidden), nn.ReLU()]
        last = ColumnLayer(hidden, classes) if column else nn.Linear(hidden, classes)
        self.mlp = nn.Sequential(*layers, last)
        self.classes, self.hidden, self.split = classes, hidden, config.split

    def prepare(self, z: Float[Tensor, "b c h w d"]) -> Float[Tensor, "b x y z k"]:
        """What the first layer sees of the latent, at the centres of the cells' parts, channels last."""
        features = self.from_features(F.silu(self.bottleneck(z)).permute(0, 2, 3, 4, 1))
        if self.split == 1:
            return features
        (b, h, w, d, _), s = features.shape, self.split
        parts = features.view(b, h, w, d, s, s, s, self.hidden).permute(0, 1, 4, 2, 5, 3, 6, 7)
        return parts.reshape(b, s * h, s * w, s * d, self.hidden)

    @torch.no_grad()
    def bottleneck_slope(
        self, z: Float[Tensor, "b c h w d"], sample: Int64[Tensor, " t"], cell: Int64[Tensor, " t"]
    ) -> Float[Tensor, "t j"]:
        """The activation's derivative in some cells: what `prepare` is linear in, up to this factor."""
        (w, d), conv = z.shape[3:], self.bottleneck
        around = F.pad(z, (1, 1, 1, 1, 1, 1)).unfold(2, 3, 1).unfold(3, 3, 1).unfold(4, 3, 1)
        patches = around[sample, :, cell // (w * d), cell // d % w, cell % d]
        x = F.linear(patches.flatten(1), conv.weight.flatten(1), conv.bias)
        s = x.sigmoid()
        return s * (1 + x * (1 - s))

    def at(
        self, features: Float[Tensor, "b h w d k"], points: Float[Tensor, "b p 3"]
    ) -> Float[Tensor, "b p C"]:
        """Logits at points r in [0,1]^3, given `prepare`'s features."""
        return self.decode(slice_trilinear(features, points), points)

    def column_at(
        self, features: Float[Tensor, "b h w d k"], points: Float[Tensor, "b p 3"]
    ) -> tuple[Float[Tensor, "b p"], Float[Tensor, "b p"]]:
        """Bone and level at points, of a field of a column (`prior/column.py`)."""
        last = self.mlp[-1]
        assert isinstance(last, ColumnLayer)
        hidden = slice_trilinear(features, points) + self.from_position(self.fourier(points))
        return last.bone_and_level(self.mlp[:-1](hidden))

    def forward(
        self, z: Float[Tensor, "b c h w d"], points: Float[Tensor, "b p 3"]
    ) -> Float[Tensor, "b p C"]:
        return self.at(self.prepare(z), points)

    def decode(self, sliced: Float[Tensor, "*p k"], points: Float[Tensor, "*p 3"]) -> Float[Tensor, "*p C"]:
        return self.mlp(sliced + self.from_position(self.fourier(points)))


def corners(
    points: Float[Tensor, "b p 3"], shape: Sequence[int]
) -> tuple[Int64[Tensor, "b p 8"], Float[Tensor, "b p 8"]]:
    """The eight cells around each point and their trilinear weights; constant beyond the outermost centres.

    Cells are numbered in C order within a sample.
    """
    cells, weights = [], []
    for axis, size in enumerate(shape):
        position = (points.detach()[..., axis] * size - 0.5).clamp(0, size - 1)
        low = position.floor()
        fraction = position - low
        cell = low.long()
        cells.append(torch.stack([cell, (cell + 1).clamp(max=size - 1)]) * math.prod(shape[axis + 1 :]))
        weights.append(torch.stack([1 - fraction, fraction]))
    # The eight corners come first while they are computed, so that the inner loops run over the points.
    (x, y, z), (u, v, w) = cells, weights
    rows = x[:, None, None] + y[None, :, None] + z[None, None]
    share = u[:, None, None] * v[None, :, None] * w[None, None]
    return rows.flatten(0, 2).movedim(0, -1).contiguous(), share.flatten(0, 2).movedim(0, -1).contiguous()


def slice_trilinear(
    features: Float[Tensor, "b h w d k"], points: Float[Tensor, "b p 3"]
) -> Float[Tensor, "b p k"]:
    """The latent slice operator T^l: trilinear between cell centres, constant beyond the outermost ones.

    Written as a weighted sum of eight gathered rows rather than by grid_sample: with the channels last each
    gather is one contiguous read. Differentiable in the features, not in the points.
    """
    b, *shape, k = features.shape
    rows, weights = corners(points, shape)
    rows = rows + math.prod(shape) * torch.arange(b, device=points.device)[:, None, None]
    flat = F.embedding_bag(
        rows.flatten(0, 1),
        features.reshape(-1, k),
        per_sample_weights=weights.flatten(0, 1).to(features.dtype),
        mode="sum",
    )
    return flat.view(b, -1, k)


class _OnDemand(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, features: Tensor, points: Tensor, field: Field) -> Tensor:
        ctx.save_for_backward(features, points)
        ctx.field = field
        chunks = points.split(max(1, CHUNK_POINTS // len(points)), dim=1)
        return torch.cat([field.at(features, p) for p in chunks], dim=1)

    @staticmethod
    @once_differentiable  # whose wrapper takes `ctx` by position only
    def backward(  # pyright: ignore[reportIncompatibleMethodOverride]
        ctx: Any, grad: Tensor
    ) -> tuple[Tensor, None, None]:
        features, points = ctx.saved_tensors
        slope = torch.zeros_like(features)
        for b in range(len(features)):
            for rows in grad[b].any(dim=-1).nonzero()[:, 0].split(CHUNK_POINTS):
                with torch.enable_grad():
                    own = features[b : b + 1].detach().requires_grad_()
                    logits = ctx.field.at(own, points[b : b + 1, rows])
                slope[b] += torch.autograd.grad(logits, own, grad[b : b + 1, rows])[0][0]
        return slope, None, None


def decode_on_demand(
    field: Field, features: Float[Tensor, "b h w d k"], points: Float[Tensor, "b p 3"]
) -> Float[Tensor, "b p C"]:
    """`field.at` whose backward pass decodes again only the points that a gradient reaches.

    A persistence diagram depends on a few critical points of a grid: the rest is decoded without a graph.
    The field's own weights get no gradient.
    """
    return _OnDemand.apply(features, points, field)  # type: ignore[return-value]


# A chunk's activations should stay in the cache; chunks of 16,384 points take a third longer.
CHUNK_POINTS = 4_096


def decode_labels(
    field: Field, z: Float[Tensor, "b c h w d"], n: int, budget_mb: float = 256.0
) -> UInt8[Tensor, "b n n n"]:
    """Label index (argmax) on the n^3 grid; one byte per voxel, so that 256^3 with 25 tissues needs 16 MB."""
    out = torch.empty(z.shape[0], n, n, n, dtype=torch.uint8, device=z.device)
    with torch.inference_mode():
        for sample, planes, logits in _chunks(field, z, n, budget_mb):
            out[sample, planes] = logits.argmax(-1).to(torch.uint8)
    return out


def _chunks(field: Field, z: Tensor, n: int, budget_mb: float) -> Iterator[tuple[int, slice, Tensor]]:
    """(sample, range of planes along x, logits (planes, n, n, C)) over the whole batch."""
    features = field.prepare(z)
    bytes_a_point = 4 * (6 * field.hidden + 2 * field.classes)
    points = min(CHUNK_POINTS, int(budget_mb * 2**20 / bytes_a_point))
    planes = max(1, points // n**2)
    centres = (torch.arange(n, device=z.device, dtype=z.dtype) + 0.5) / n
    for sample in range(z.shape[0]):
        for start in range(0, n, planes):
            chosen = slice(start, min(start + planes, n))
            x = centres[chosen]
            sliced = _slice_planes(features[sample], x, n)
            points_r = torch.stack(torch.meshgrid(x, centres, centres, indexing="ij"), -1)
            yield sample, chosen, field.decode(sliced, points_r)


def _slice_planes(
    features: Float[Tensor, "h w d k"], x: Float[Tensor, " p"], n: int
) -> Float[Tensor, "p n n k"]:
    """`slice_trilinear` on whole planes of the n^3 grid: linear along x here, bilinear within by torch."""
    h = features.shape[0]
    position = (x * h - 0.5).clamp(0, h - 1)
    low = position.floor().long()
    fraction = (position - low)[:, None, None, None]
    planes = torch.lerp(features[low], features[(low + 1).clamp(max=h - 1)], fraction)
    planes = F.interpolate(planes.permute(0, 3, 1, 2), size=(n, n), mode="bilinear", align_corners=False)
    return planes.permute(0, 2, 3, 1)
