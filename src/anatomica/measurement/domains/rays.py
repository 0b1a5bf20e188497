"""Ray-like control domains: spherical (through a shell) and cylindrical (through a tube's wall)."""

from __future__ import annotations

import torch
from jaxtyping import Float
from torch import Tensor

from anatomica.measurement.domains.domain import Domains, Grid, invalid, make
from anatomica.measurement.domains.frames import (
    Z_AXIS,
    cylindrical_lattice,
    fibonacci_lattice,
    orthonormalize,
)
from anatomica.measurement.moments import centroid
from anatomica.measurement.parse import slice_volume

MISS = 0.5
"""A ray that meets less than this many voxel edges of tissue has missed the wall."""


def spherical_domains(
    S: Float[Tensor, "h w d"],
    grid: Grid,
    extent: Float[Tensor, "3"],
    n_rays: int,
    n_query: int = 512,
    reference: Float[Tensor, "3"] = Z_AXIS,
) -> Domains:
    """Algorithm "Spherical Domain Computation": boxes on the wall along Fibonacci rays from the centroid."""
    if not (S > 0).any():
        return invalid(n_rays, grid, "the structure is empty")
    p = centroid(S).double()
    return _on_walls(S, p.expand(n_rays, 3), fibonacci_lattice(n_rays), grid, extent, n_query, reference)


def cylindrical_domains(
    S: Float[Tensor, "h w d"],
    grid: Grid,
    extent: Float[Tensor, "3"],
    n_z: int,
    n_theta: int,
    n_query: int = 512,
    axis: str = "centroid",
    reference: Float[Tensor, "3"] = Z_AXIS,
) -> Domains:
    """Algorithm "Cylindrical Domain Computation": boxes on the wall along horizontal rays at n_z heights.

    The rays start on the cube's own z-axis (`axis="cube"`, the paper) or on the structure's centroid at that
    height (`"centroid"`, the default: a vessel that wanders off the axis would be crossed twice).
    """
    count = n_z * n_theta
    if not (S > 0).any():
        return invalid(count, grid, "the structure is empty")
    heights, directions = cylindrical_lattice(n_z, n_theta)
    start = torch.full((count, 3), 0.5, dtype=torch.float64)
    start[:, 2] = heights
    if axis == "centroid":
        for k, height in enumerate(heights.tolist()):
            index = min(int(height * S.shape[2]), S.shape[2] - 1)
            slab = S[:, :, index : index + 1]
            if slab.sum() > 0:
                start[k, :2] = centroid(slab)[:2].double()
    return _on_walls(S, start, directions, grid, extent, n_query, reference)


def _on_walls(
    S: Float[Tensor, "h w d"],
    start: Float[Tensor, "k 3"],
    R_gamma: Float[Tensor, "k 3"],
    grid: Grid,
    extent: Float[Tensor, "3"],
    n_query: int,
    reference: Float[Tensor, "3"],
) -> Domains:
    """Centre each box on the tissue's centroid along its query ray, the box's third axis along the ray."""
    reach = _to_the_face(start, R_gamma)
    share = (torch.arange(n_query, dtype=torch.float64) + 0.5) / n_query
    distance = reach[:, None] * share
    rays = start[:, None] + distance[..., None] * R_gamma[:, None]
    along = slice_volume(S[None], rays[None].to(S))[0].double()
    mass = along.sum(dim=-1)
    to_wall = (along * distance).sum(dim=-1) / mass.clamp_min(1e-12)
    tissue_voxels = mass * reach / n_query * max(S.shape)
    reasons = ["" if m >= MISS else "the ray misses the structure" for m in tissue_voxels.tolist()]
    R_beta, _ = orthonormalize(R_gamma, reference)
    # The paper's alpha is gamma x beta, which makes a left-handed frame; its negative spans the same box.
    R_alpha = torch.linalg.cross(R_beta, R_gamma)
    R = torch.stack([R_alpha, R_beta, R_gamma], dim=-1)
    return make(R, extent, start + to_wall[:, None] * R_gamma, grid, reasons)


def _to_the_face(start: Float[Tensor, "k 3"], direction: Float[Tensor, "k 3"]) -> Float[Tensor, "k"]:
    """Distance from a point in the unit cube to the cube's face along a direction."""
    ahead = torch.where(direction > 0, 1 - start, start)
    return (ahead / direction.abs().clamp_min(1e-12)).amin(dim=-1)
