"""A column's labels as two numbers: whether there is bone, and at which level.

One logit per vertebra lets a decoder mix the labels of vertebrae that are far apart, and learns each window
of the column by itself. Here the last layer writes bone and a continuous level u, and the logit of vertebra k
falls with the distance of u from k: only neighbours can be confused, and every window is the same task.
"""

from __future__ import annotations

import torch
from jaxtyping import Float, Integer
from torch import Tensor, nn

from anatomica.prior.layers import Conv3d

SHARPNESS = 10.0
"""Logit per level of distance far from a vertebra; at its own level the next one is 4.1 behind."""
INPUT_SCALE = 3.0
"""What an encoder sees of a level is this many times its place among all, in standard deviations."""


class ColumnInput(nn.Module):
    """Label indices, or each label's share of a voxel, as two channels: bone, and its level times bone."""

    table: Tensor

    def __init__(self, classes: int) -> None:
        super().__init__()
        levels = torch.arange(1.0, classes)
        scaled = torch.cat([torch.zeros(1), INPUT_SCALE * (levels - levels.mean()) / levels.std()])
        table = torch.stack([(torch.arange(classes) > 0).float(), scaled])
        self.register_buffer("table", table, persistent=False)

    def forward(
        self, labels: Integer[Tensor, "b n n n"] | Float[Tensor, "b C n n n"]
    ) -> Float[Tensor, "b 2 n n n"]:
        if labels.is_floating_point():
            return torch.einsum("bcxyz,kc->bkxyz", labels, self.table.to(labels))
        return self.table[:, labels.long()].movedim(0, 1)


class ColumnLayer(nn.Module):
    """A linear layer to (bone, level) at each of `places`, then logits: 0 for the background, K in order."""

    levels: Tensor

    def __init__(self, width: int, classes: int, places: int = 1) -> None:
        super().__init__()
        self.linear = nn.Linear(width, 2 * places)
        self.places = places
        self.register_buffer("levels", torch.arange(1.0, classes), persistent=False)

    def forward(self, x: Float[Tensor, "*p width"], held: bool = False) -> Float[Tensor, "*p logits"]:
        bone, level = self.linear(x).unflatten(-1, (self.places, 2)).unbind(-1)
        level = level.detach() if held else level
        return column_logits(bone, level, self.levels).flatten(-2)

    def bone_and_level(self, x: Float[Tensor, "*p width"]) -> tuple[Tensor, Tensor]:
        """The logit of bone, and the level as a number between labels, at the only place."""
        bone, level = self.linear(x).unbind(-1)
        return bone, self.levels.mean() + self.levels.std() * level


class ColumnConv(nn.Module):
    """The same for a grid of voxels: a convolution to (bone, level), then logits, channels first."""

    levels: Tensor

    def __init__(self, channels: int, classes: int) -> None:
        super().__init__()
        self.conv = Conv3d(channels, 2, 3, padding=1)
        self.register_buffer("levels", torch.arange(1.0, classes), persistent=False)

    def forward(self, x: Float[Tensor, "b c n n n"]) -> Float[Tensor, "b C n n n"]:
        bone, level = self.conv(x).unbind(1)
        return column_logits(bone, level, self.levels).movedim(-1, 1)


def column_logits(
    bone: Float[Tensor, "*p"], level: Float[Tensor, "*p"], levels: Float[Tensor, " k"]
) -> Float[Tensor, "*p 1+k"]:
    """bone - SHARPNESS (sqrt(1 + (u - k)^2) - 1) with u = mean + sd * level over the column.

    The root makes a parabola near k and a cone far away, so that a level that is wrong by twenty pulls no
    harder than one that is wrong by two.
    """
    u = levels.mean() + levels.std() * level
    away = u[..., None] - levels
    logits = bone[..., None] - SHARPNESS * ((1 + away**2).sqrt() - 1)
    return torch.cat([torch.zeros_like(bone)[..., None], logits], dim=-1)
