"""A column's labels as a few numbers: whether there is bone, of which colour it is, and at which level.

One logit per vertebra lets a decoder mix the labels of vertebrae that are far apart, and learns each window
of the column by itself. Here the last layer writes bone, a level u along the column, and logits of three
colours that vertebrae have in turn. Neighbours differ in colour, which is one of three things and no fraction
of a number; the level only has to tell a vertebra from the next one of its colour, three further on. So a
level that is wrong by one, or half-way between two, changes no label.
"""

from __future__ import annotations

import torch
from jaxtyping import Float, Integer
from torch import Tensor, nn

from anatomica.prior.layers import Conv3d

COLOURS = 3
"""Two would not tell the vertebra above from the one below."""
NUMBERS = 2 + COLOURS
"""What the layers write at a point: bone, level, colours."""
SHARPNESS = 10.0
"""Logit per level of distance far from a vertebra."""
ALIKE = 1.0
"""Within this many levels the level says nothing: with a cone from 0 on decoders learned no colours, because
the level was enough for them (0.31 of points in bone right after 734 steps, a third by chance)."""
INPUT_SCALE = 3.0
"""What an encoder sees of a level is this many times its place among all, in standard deviations."""


def colour_of(classes: int) -> Integer[Tensor, " k"]:
    """The colour of each vertebra, 1 to classes - 1."""
    return torch.arange(classes - 1) % COLOURS


class ColumnInput(nn.Module):
    """Label indices, or each label's share of a voxel, as channels: bone, level times bone, colours."""

    table: Tensor

    def __init__(self, classes: int) -> None:
        super().__init__()
        levels = torch.arange(1.0, classes)
        table = torch.zeros(NUMBERS, classes)
        table[0, 1:] = 1.0
        table[1, 1:] = INPUT_SCALE * (levels - levels.mean()) / levels.std()
        table[2:, 1:] = nn.functional.one_hot(colour_of(classes), COLOURS).T
        self.register_buffer("table", table, persistent=False)

    def forward(
        self, labels: Integer[Tensor, "b n n n"] | Float[Tensor, "b C n n n"]
    ) -> Float[Tensor, "b k n n n"]:
        if labels.is_floating_point():
            return torch.einsum("bcxyz,kc->bkxyz", labels, self.table.to(labels))
        return self.table[:, labels.long()].movedim(0, 1)


class ColumnLayer(nn.Module):
    """A linear layer to a column's numbers at each of `places`, then logits: the background, K in order."""

    levels: Tensor
    colours: Tensor

    def __init__(self, width: int, classes: int, places: int = 1) -> None:
        super().__init__()
        self.linear = nn.Linear(width, NUMBERS * places)
        self.places = places
        self.register_buffer("levels", torch.arange(1.0, classes), persistent=False)
        self.register_buffer("colours", colour_of(classes), persistent=False)

    def forward(self, x: Float[Tensor, "*p width"], held: bool = False) -> Float[Tensor, "*p logits"]:
        numbers = self.linear(x).unflatten(-1, (self.places, NUMBERS))
        if held:
            numbers = torch.cat([numbers[..., :1], numbers[..., 1:].detach()], dim=-1)
        return column_logits(numbers, self.levels, self.colours).flatten(-2)


class ColumnConv(nn.Module):
    """The same for a grid of voxels: a convolution to a column's numbers, then logits, channels first."""

    levels: Tensor
    colours: Tensor

    def __init__(self, channels: int, classes: int) -> None:
        super().__init__()
        self.conv = Conv3d(channels, NUMBERS, 3, padding=1)
        self.register_buffer("levels", torch.arange(1.0, classes), persistent=False)
        self.register_buffer("colours", colour_of(classes), persistent=False)

    def forward(self, x: Float[Tensor, "b c n n n"]) -> Float[Tensor, "b C n n n"]:
        return column_logits(self.conv(x).movedim(1, -1), self.levels, self.colours).movedim(-1, 1)


def column_logits(
    numbers: Float[Tensor, "*p m"], levels: Float[Tensor, " k"], colours: Integer[Tensor, " k"]
) -> Float[Tensor, "*p 1+k"]:
    """bone + colour of k - SHARPNESS (sqrt(1 + d^2) - 1), d = |u - k| beyond ALIKE and u = mean + sd * level.

    The root makes a parabola and then a cone, so that a level that is wrong by twenty pulls no harder than
    one that is wrong by three. Of the colours only differences count (the bone is by itself).
    """
    bone, level, colour = numbers[..., 0], numbers[..., 1], numbers[..., 2:]
    u = levels.mean() + levels.std() * level
    away = ((u[..., None] - levels).abs() - ALIKE).relu()
    colour = colour - colour.amax(dim=-1, keepdim=True)
    logits = bone[..., None] + colour[..., colours] - SHARPNESS * ((1 + away**2).sqrt() - 1)
    return torch.cat([torch.zeros_like(bone)[..., None], logits], dim=-1)
