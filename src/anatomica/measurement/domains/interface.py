"""Interface control domains: thin boxes on both sides of the place where two structures touch."""

from __future__ import annotations

import torch
import torch.nn.functional as F
from jaxtyping import Float
from torch import Tensor

from anatomica.measurement.domains.domain import Domains, Grid, invalid, make
from anatomica.measurement.domains.frames import Z_AXIS, orthonormalize
from anatomica.measurement.moments import centroid


def interface_domains(
    S_A: Float[Tensor, "h w d"],
    S_B: Float[Tensor, "h w d"],
    grid: Grid,
    extent: Float[Tensor, "3"],
    k_dil: int = 5,
    reference: Float[Tensor, "3"] = Z_AXIS,
) -> tuple[Domains, Domains]:
    """Algorithm "Interface Domain Computation": one domain on A's side and one on B's.

    The box's first axis points from A to B; `extent` are its edge lengths in cube units; `k_dil` is the odd
    max-pooling kernel in voxels of S. Both are invalid where the structures do not meet within k_dil.
    """
    for name, S in (("first", S_A), ("second", S_B)):
        if not (S > 0).any():
            nowhere = invalid(1, grid, f"the {name} structure of the interface is empty")
            return nowhere, nowhere
    M = torch.minimum(_dilate(S_A, k_dil), _dilate(S_B, k_dil))
    A_int, B_int = S_A * M, S_B * M
    if A_int.sum() <= 0 or B_int.sum() <= 0:
        nowhere = invalid(1, grid, "the two structures do not touch")
        return nowhere, nowhere
    p_A, p_B = centroid(A_int), centroid(B_int)
    gap = (p_B - p_A).norm()
    if gap < 1e-6:
        nowhere = invalid(1, grid, "the two sides of the interface have the same centroid")
        return nowhere, nowhere
    R_alpha = ((p_B - p_A) / gap).double()
    R_beta, R_gamma = orthonormalize(R_alpha, reference)
    R = torch.stack([R_alpha, R_beta, R_gamma], dim=-1)[None]
    return (
        make(R, extent[None], p_A.double()[None], grid, [""]),
        make(R, extent[None], p_B.double()[None], grid, [""]),
    )


def _dilate(S: Float[Tensor, "h w d"], k: int) -> Float[Tensor, "h w d"]:
    """Grey dilation by max pooling with an odd kernel, one axis at a time (a box is separable)."""
    for axis in range(3):
        moved = S.movedim(axis, -1)
        S = (
            F.max_pool1d(moved.reshape(1, -1, moved.shape[-1]), k, 1, k // 2)
            .reshape(moved.shape)
            .movedim(-1, axis)
        )
    return S
