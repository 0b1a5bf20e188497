"""The neural field decoder F of Anatomica-L: logits at any points of the cube, straight from the latent."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence

import torch
import torch.nn.functional as F
from jaxtyping import Float, Int64, UInt8
from torch import Tensor, nn

from anatomica.models.layers import Conv3d
from anatomica.models.presets import FieldConfig


class FourierFeatures(nn.Module):
    """Random Fourier features (cos 2πBr, sin 2πBr), B drawn once from N(0, bandwidth^2) and kept."""

    frequencies: Tensor

    def __init__(self, dim: int, bandwidth: float) -> None:
        super().__init__()
        generator = torch.Generator().manual_seed(0)
        self.register_buffer("frequencies", bandwidth * torch.randn(3, dim, generator=generator))

    def forward(self, r: Float[Tensor, "*p 3"]) -> Float[Tensor, "*p e"]:
        angle = (2 * math.pi) * (r @ self.frequencies)
        return torch.cat([angle.cos(), angle.sin()], dim=-1)


class Field(nn.Module):
    """Bottleneck convolution, trilinear slice at the query points, Fourier features, MLP, logits.

    The MLP's first layer acts on [slice(features), fourier(r)]. Slicing is linear, so the features' half of
    that layer is applied on the latent grid, before slicing: the same function, one matrix product a point
    less. `prepare` does all that needs no points, once a latent; `at` does the rest, once a point set.
    """

    def __init__(self, latent_channels: int, classes: int, config: FieldConfig) -> None:
        super().__init__()
        hidden = config.hidden
        self.bottleneck = Conv3d(latent_channels, config.channels, 3, padding=1)
        self.fourier = FourierFeatures(config.fourier, config.bandwidth)
        self.from_features = nn.Linear(config.channels, hidden, bias=False)
        self.from_position = nn.Linear(2 * config.fourier, hidden)
        layers: list[nn.Module] = [nn.LayerNorm(hidden), nn.ReLU()]
        for _ in range(config.layers - 1):
            layers += [nn.Linear(hidden, hidden), nn.LayerNorm(hidden), nn.ReLU()]
        self.mlp = nn.Sequential(*layers, nn.Linear(hidden, classes))
        self.classes, self.hidden = classes, hidden

    def prepare(self, z: Float[Tensor, "b c h w d"]) -> Float[Tensor, "b h w d k"]:
        """What the first layer sees of the latent, at the latent's grid points, channels last."""
        return self.from_features(self.bottleneck(z).permute(0, 2, 3, 4, 1))

    def latent_weight(self) -> Float[Tensor, "k c 3 3 3"]:
        """`prepare` without its constant part: one convolution of the latent."""
        return torch.einsum("kj,jcxyz->kcxyz", self.from_features.weight, self.bottleneck.weight)

    def at(
        self, features: Float[Tensor, "b h w d k"], points: Float[Tensor, "b p 3"]
    ) -> Float[Tensor, "b p C"]:
        """Logits at points r in [0,1]^3, given `prepare`'s features."""
        return self.decode(slice_trilinear(features, points), points)

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
    size = torch.tensor(list(shape), device=points.device)
    position = (points.detach() * size - 0.5).clamp(min=torch.zeros_like(size), max=size - 1)
    low = position.floor().long()
    step = (low + 1 < size).long()
    fraction = position - low
    stride = torch.tensor([shape[1] * shape[2], shape[2], 1], device=points.device)
    cell = (low * stride).sum(-1)
    rows, weights = [], []
    for corner in range(8):
        bits = torch.tensor([corner >> 2 & 1, corner >> 1 & 1, corner & 1], device=points.device)
        rows.append(cell + (bits * step * stride).sum(-1))
        weights.append(torch.where(bits.bool(), fraction, 1 - fraction).prod(-1))
    return torch.stack(rows, -1), torch.stack(weights, -1)


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


# A chunk's activations should stay in the second-level cache; more points a chunk only add memory traffic.
CHUNK_POINTS = 16_384


def decode_field(
    field: Field, z: Float[Tensor, "b c h w d"], n: int, budget_mb: float = 256.0
) -> Float[Tensor, "b C n n n"]:
    """Logits on the n^3 grid of voxel centres, any n. Working memory besides the result: `budget_mb`."""
    out = z.new_empty(z.shape[0], field.classes, n, n, n)
    for sample, planes, logits in _chunks(field, z, n, budget_mb):
        out[sample, :, planes] = logits.permute(3, 0, 1, 2)
    return out


def decode_labels(
    field: Field, z: Float[Tensor, "b c h w d"], n: int, budget_mb: float = 256.0
) -> UInt8[Tensor, "b n n n"]:
    """Label index (argmax) on the n^3 grid; a byte a voxel, so that 256^3 with 25 tissues needs 16 MB."""
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
