"""The neural field decoder F of Anatomica-L: logits at any points of the cube, straight from the latent."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import torch
import torch.nn.functional as F
from jaxtyping import Bool, Float, Int64, UInt8
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

    def decode(
        self, sliced: Float[Tensor, "*p k"], points: Float[Tensor, "*p 3"], held: bool = False
    ) -> Float[Tensor, "*p C"]:
        """Logits; with `held` the levels of a column are constants to autograd."""
        hidden, last = sliced + self.from_position(self.fourier(points)), self.mlp[-1]
        if held and isinstance(last, ColumnLayer):
            return last(self.mlp[:-1](hidden), held=True)
        return self.mlp(hidden)


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


NUMBERED = 2**20
"""Voxels that are numbered at a time."""
SURE_BY = 4.0
"""A label that leads the next by less, in logits, is looked at more closely. Of 12 samples of the shipped
models at 128^3 it changes 8 voxels of 25 million not to look where labels lead by more (`tests/prior`)."""


def decode_labels(field: Field, z: Float[Tensor, "b c h w d"], n: int) -> UInt8[Tensor, "b n n n"]:
    """Label index (argmax) on the n^3 grid; one byte per voxel, so that 256^3 with 25 tissues needs 16 MB.

    Most of a cube is the inside of something. A grid half as fine is decoded first, itself from one half as
    fine, down to the grid that the field has features on; where all 27 labels around a voxel of it are the
    same, and its own is sure, it stands for its eight parts. So only borders are decoded on the finest grid.
    """
    with torch.inference_mode():
        found = [_decode_where_labels_vary(field, field.prepare(one), n)[0] for one in z.split(1)]
    return torch.stack(found)


def _decode_where_labels_vary(
    field: Field, features: Float[Tensor, "1 h w d k"], n: int
) -> tuple[UInt8[Tensor, "n n n"], Bool[Tensor, "n n n"]]:
    """Labels of one sample, and which of them are sure."""
    if n % 2 or n // 2 < max(features.shape[1:4]):
        everywhere = torch.ones(n, n, n, dtype=torch.bool, device=features.device)
        labels = torch.empty(n, n, n, dtype=torch.uint8, device=features.device)
        return _decode_voxels(field, features, everywhere, labels, everywhere.clone())
    labels, sure = _decode_where_labels_vary(field, features, n // 2)
    inner = sure & (_extreme(labels, torch.maximum) == _extreme(labels, torch.minimum))
    return _decode_voxels(field, features, _doubled(~inner), _doubled(labels), _doubled(sure))


def _decode_voxels(
    field: Field,
    features: Float[Tensor, "1 h w d k"],
    chosen: Bool[Tensor, "n n n"],
    labels: UInt8[Tensor, "n n n"],
    sure: Bool[Tensor, "n n n"],
) -> tuple[UInt8[Tensor, "n n n"], Bool[Tensor, "n n n"]]:
    """`labels` and `sure` with those of the chosen voxels decoded."""
    n = len(labels)
    for voxel in _numbered(chosen):
        x, y, z = voxel // n**2, voxel // n % n, voxel % n
        points = (torch.stack([x, y, z], -1).to(features) + 0.5) / n
        best, label = field.at(features, points[None])[0].topk(2, dim=-1)
        labels.view(-1)[voxel] = label[:, 0].to(torch.uint8)
        sure.view(-1)[voxel] = best[:, 0] - best[:, 1] > SURE_BY
    return labels, sure


def _numbered(chosen: Bool[Tensor, "n n n"]) -> Iterator[Int64[Tensor, " v"]]:
    """The chosen voxels in C order, some at a time: eight bytes for each of 512^3 would be a gigabyte."""
    for part, several in enumerate(chosen.view(-1).split(NUMBERED)):
        yield from (several.nonzero()[:, 0] + part * NUMBERED).split(CHUNK_POINTS)


def _extreme(labels: UInt8[Tensor, "n n n"], of: Callable[[Tensor, Tensor], Tensor]) -> Tensor:
    """The largest or smallest label of the 27 around each voxel."""
    for axis in range(3):
        before, after = labels.clone(), labels.clone()
        before.narrow(axis, 1, len(labels) - 1).copy_(labels.narrow(axis, 0, len(labels) - 1))
        after.narrow(axis, 0, len(labels) - 1).copy_(labels.narrow(axis, 1, len(labels) - 1))
        labels = of(labels, of(before, after))
    return labels


def _doubled(x: Tensor) -> Tensor:
    """Each voxel's value in its eight parts."""
    return x.repeat_interleave(2, 0).repeat_interleave(2, 1).repeat_interleave(2, 2)
