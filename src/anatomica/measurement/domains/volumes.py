"""Volumetric control domains: the whole cube, a tissue's bounding box, and a box given outright."""

from __future__ import annotations

import torch
from jaxtyping import Float
from torch import Tensor

from anatomica.measurement.domains.domain import Domains, Grid, invalid, make

BINARY = 0.9
"""The paper's threshold for a voxel that surely belongs to the structure."""


def global_domain(grid: Grid) -> Domains:
    """Algorithm "Global Domain Computation": R = I, s = 1, t = the cube's centre."""
    return make(torch.eye(3)[None], torch.ones(1, 3), torch.full((1, 3), 0.5), grid, [""])


def cartesian_domain(S: Float[Tensor, "h w d"], grid: Grid, margin: float = 0.0) -> Domains:
    """Algorithm "Cartesian Domain Computation": the bounding box of the structure, limits at voxel faces.

    `margin` widens the box on every side, in cube units.
    """
    inside = S > BINARY
    if not inside.any():
        return invalid(1, grid, "the structure is empty")
    lower, upper = torch.zeros(3, dtype=torch.float64), torch.zeros(3, dtype=torch.float64)
    for axis in range(3):
        others = [a for a in range(3) if a != axis]
        index = inside.any(dim=others[1]).any(dim=others[0]).nonzero()[:, 0]
        lower[axis] = index.min() / S.shape[axis] - margin
        upper[axis] = (index.max() + 1) / S.shape[axis] + margin
    reason = "" if bool((upper > lower).all()) else "its negative margin leaves nothing of the box"
    return make(torch.eye(3)[None], (upper - lower)[None], ((upper + lower) / 2)[None], grid, [reason])


def box_domain(
    centre: Float[Tensor, "k 3"], size: Float[Tensor, "k 3"], R: Float[Tensor, "k 3 3"], grid: Grid
) -> Domains:
    """Boxes given outright by centre, edge lengths and rotation, in cube units."""
    return make(R, size, centre, grid, [""] * len(centre))
