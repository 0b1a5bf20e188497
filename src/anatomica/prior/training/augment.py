"""Small rotations, scalings and shifts of a label map. No mirror: the heart is on the left."""

from __future__ import annotations

import torch
from jaxtyping import Float, UInt8
from torch import Tensor

# Largest rotation (radians), relative scaling and shift (share of the cube's edge) at strength 1.
ROTATION, SCALING, SHIFT = 0.12, 0.08, 0.03


def augment(
    labels: UInt8[Tensor, "n n n"], generator: torch.Generator, strength: float = 1.0
) -> UInt8[Tensor, "n n n"]:
    """One random similarity of the map."""
    if strength <= 0:
        return labels
    n = labels.shape[0]
    draw = 2 * torch.rand(7, generator=generator) - 1
    rotation = _rotation(strength * ROTATION * draw[:3])
    scale = 1 + strength * SCALING * draw[3]
    centres = (torch.arange(n) + 0.5) / n - 0.5
    grid = torch.stack(torch.meshgrid(centres, centres, centres, indexing="ij"), -1).view(-1, 3)
    source = grid @ (rotation / scale).T + strength * SHIFT * draw[4:] + 0.5
    return resample_labels(labels, source).view(n, n, n)


def resample_labels(labels: UInt8[Tensor, "n n n"], points: Float[Tensor, "p 3"]) -> UInt8[Tensor, " p"]:
    """Label whose trilinearly interpolated indicator is largest at each point of [0,1]^3.

    Eight corners vote with their trilinear weights. Nearly all points have eight equal corners, so only the
    others are counted; the cost does not grow with the number of tissues. Tissue that the cube's face cuts
    goes on beyond it, as it does in a patient.
    """
    n = labels.shape[0]
    position = (points * n - 0.5).clamp(0, n - 1)
    low = position.floor().clamp_max(n - 2)
    fraction = position - low
    cell = (low @ torch.tensor([float(n * n), float(n), 1.0])).int()
    offsets = torch.tensor([a * n * n + b * n + c for a in (0, 1) for b in (0, 1) for c in (0, 1)]).int()
    flat = labels.flatten()
    corners = flat[cell[:, None] + offsets]
    out = corners[:, 0].clone()
    mixed = (corners != corners[:, :1]).any(1).nonzero()[:, 0]
    few, t = corners[mixed], fraction[mixed]
    sides = torch.stack([1 - t, t], 1)
    weights = torch.einsum("pa,pb,pc->pabc", sides[..., 0], sides[..., 1], sides[..., 2]).flatten(1)
    votes = torch.einsum("pij,pj->pi", (few[:, :, None] == few[:, None, :]).float(), weights)
    out[mixed] = few.gather(1, votes.argmax(1, keepdim=True))[:, 0]
    return out


def _rotation(axis_angle: Tensor) -> Tensor:
    """Rotation matrix of an axis-angle vector."""
    x, y, z = axis_angle.tolist()
    skew = torch.tensor([[0.0, -z, y], [z, 0.0, -x], [-y, x, 0.0]])
    return torch.linalg.matrix_exp(skew)
