"""Orthonormal frames and direction lattices for the curved coordinate systems."""

from __future__ import annotations

import math
from itertools import pairwise

import torch
from jaxtyping import Float
from torch import Tensor

X_AXIS, Y_AXIS, Z_AXIS = torch.eye(3, dtype=torch.float64)


def orthonormalize(
    U0: Float[Tensor, "*k 3"], reference: Float[Tensor, "3"] = Z_AXIS
) -> tuple[Float[Tensor, "*k 3"], Float[Tensor, "*k 3"]]:
    """Algorithm "Orthonormalization": U1 = U0 x ref (normalised), U2 = U0 x U1.

    Where U0 is within about half a degree of the reference, the next coordinate axis stands in for it.
    """
    reference = (reference / reference.norm()).to(U0)
    alternate = reference.roll(1)
    if torch.linalg.cross(reference, alternate).norm() < 1e-2:  # a diagonal is its own next axis
        alternate = X_AXIS.to(U0)
    side = torch.linalg.cross(U0, reference.expand_as(U0))
    aligned = side.norm(dim=-1, keepdim=True) < 1e-2
    side = torch.where(aligned, torch.linalg.cross(U0, alternate.expand_as(U0)), side)
    U1 = side / side.norm(dim=-1, keepdim=True)
    return U1, torch.linalg.cross(U0, U1)


def parallel_transport(
    F1: Float[Tensor, "n 3"], F2_0: Float[Tensor, "3"], F3_0: Float[Tensor, 3]
) -> tuple[Float[Tensor, "n 3"], Float[Tensor, "n 3"]]:
    """Algorithm "ParallelTransport": carry a frame along tangents F1 by Rodrigues rotations, without twist.

    On straight pieces the rotation axis vanishes and the frame is kept. Each frame is made orthogonal to its
    tangent again, so that rounding does not build up over a long centreline.
    """
    F2, F3 = [F2_0], [F3_0]
    for before, now in pairwise(F1):
        axis = torch.linalg.cross(before, now)
        sine = axis.norm()
        if sine < 1e-9:
            moved = F2[-1]
        else:
            angle = torch.atan2(sine, before.dot(now))
            moved = rodrigues(F2[-1], axis / sine, angle)
        moved = moved - moved.dot(now) * now
        F2.append(moved / moved.norm())
        F3.append(torch.linalg.cross(now, F2[-1]))
    return torch.stack(F2), torch.stack(F3)


def rodrigues(v: Float[Tensor, "3"], axis: Float[Tensor, 3], angle: Float[Tensor, ""]) -> Float[Tensor, "3"]:
    """Rotate v by `angle` (radians) about the unit vector `axis`."""
    along = axis.dot(v) * axis
    return along + torch.cos(angle) * (v - along) + torch.sin(angle) * torch.linalg.cross(axis, v)


def fibonacci_lattice(count: int) -> Float[Tensor, "k 3"]:
    """`count` unit vectors spread evenly over the sphere by the golden angle."""
    k = torch.arange(count, dtype=torch.float64)
    z = 1 - (2 * k + 1) / count
    angle = k * math.pi * (3 - math.sqrt(5))
    radius = (1 - z**2).clamp_min(0).sqrt()
    return torch.stack([radius * angle.cos(), radius * angle.sin(), z], dim=-1)


def cylindrical_lattice(n_z: int, n_theta: int) -> tuple[Float[Tensor, "k"], Float[Tensor, "k 3"]]:
    """Heights in (0, 1) at the middles of n_z equal slabs, and n_theta horizontal directions at each."""
    heights = (torch.arange(n_z, dtype=torch.float64) + 0.5) / n_z
    theta = 2 * math.pi * torch.arange(n_theta, dtype=torch.float64) / n_theta
    around = torch.stack([theta.cos(), theta.sin(), torch.zeros_like(theta)], dim=-1)
    return heights.repeat_interleave(n_theta), around.repeat(n_z, 1)
