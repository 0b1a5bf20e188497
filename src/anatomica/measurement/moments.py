"""Geometric moments: mass, centroid and covariance of substructures, local to global, differentiable."""

from __future__ import annotations

import math
from dataclasses import dataclass

import torch
import torch.nn.functional as F
from jaxtyping import Float
from torch import Tensor

from anatomica.measurement.domains.domain import Domains

EPSILON = 1e-9
"""Added to the covariance's diagonal before it is divided by its trace (the paper's stabiliser), and the
smallest mass divided by: a voxel in a million-point grid weighs a thousand times more."""


@dataclass(frozen=True, eq=False)
class Moments:
    """Mass (fraction of the cube's volume), centroid ([0, 1]^3) and covariance (units of L^2)."""

    mass: Float[Tensor, "*k"]
    centroid: Float[Tensor, "*k 3"]
    covariance: Float[Tensor, "*k 3 3"]

    @property
    def normalised_covariance(self) -> Float[Tensor, "*k 3 3"]:
        """Scale-normalised covariance: shape and orientation without size, trace 1."""
        return normalise(self.covariance)

    @property
    def size(self) -> Float[Tensor, "*k"]:
        """Trace of the covariance: the mean square distance from the centroid."""
        return self.covariance.diagonal(dim1=-2, dim2=-1).sum(-1)


@dataclass(frozen=True, eq=False)
class Decomposition:
    """Covariance = size * U diag(shape) U^T: size is the trace, shape the normalised eigenvalues (largest
    first), orientation the eigenvectors as columns of a rotation."""

    size: Float[Tensor, "*k"]
    shape: Float[Tensor, "*k 3"]
    orientation: Float[Tensor, "*k 3 3"]


def local_moments(S: Float[Tensor, "*k a e g"]) -> Moments:
    """Moments in the domain's own frame: mean of S, and coordinates in [0, 1] of the template grid.

    S is read once: its last axis is contracted with (1, z, z^2), then the small remainder with (1, y, y^2)
    and (1, x, x^2), which leaves M[i, j, k] = mean of x^i y^j z^k S. Coordinates are taken about the centre,
    so that E[r r] - p p loses no digits, and an empty substructure has its centroid there.
    """
    along_x, along_y, along_z = (_powers(n, S) for n in S.shape[-3:])
    M = F.linear(S, along_z)
    M = along_x @ (along_y @ M).flatten(-2) / math.prod(S.shape[-3:])
    M = M.unflatten(-1, (3, 3))
    mass = M[..., 0, 0, 0]
    first = torch.stack([M[..., 1, 0, 0], M[..., 0, 1, 0], M[..., 0, 0, 1]], dim=-1)
    xy, xz, yz = M[..., 1, 1, 0], M[..., 1, 0, 1], M[..., 0, 1, 1]
    xx, yy, zz = M[..., 2, 0, 0], M[..., 0, 2, 0], M[..., 0, 0, 2]
    second = torch.stack([xx, xy, xz, xy, yy, yz, xz, yz, zz], dim=-1).unflatten(-1, (3, 3))
    safe = mass.clamp_min(EPSILON)[..., None]
    p = first / safe
    covariance = second / safe[..., None] - p[..., :, None] * p[..., None, :]
    return Moments(mass, p + 0.5, covariance)


def _powers(n: int, like: Tensor) -> Float[Tensor, "3 n"]:
    """(1, r, r^2) at n cell centres of [-1/2, 1/2]."""
    r = (torch.arange(n, device=like.device, dtype=like.dtype) + 0.5) / n - 0.5
    return torch.stack([torch.ones_like(r), r, r**2])


def global_moments(local: Moments, domains: Domains) -> Moments:
    """Algorithm "Geometric Measurement", local to global: m |det J|, t + J (p - 1/2), J Sigma J^T."""
    J, t = domains.J.to(local.mass), domains.t.to(local.mass)
    volume = domains.s.to(local.mass).prod(dim=-1).abs()
    return Moments(
        local.mass * volume,
        t + (J @ (local.centroid - 0.5)[..., None])[..., 0],
        J @ local.covariance @ J.mT,
    )


def measure_moments(S: Float[Tensor, "*b k a e g"], domains: Domains) -> Moments:
    """Global moments of the substructures parsed in `domains`."""
    return global_moments(local_moments(S), domains)


def centroid(S: Float[Tensor, "h w d"]) -> Float[Tensor, 3]:
    """Centroid of a whole structure map in the cube's coordinates."""
    return local_moments(S).centroid


def normalise(covariance: Float[Tensor, "*k 3 3"]) -> Float[Tensor, "*k 3 3"]:
    """Covariance divided by its trace, stabilised for empty substructures."""
    stable = covariance + EPSILON * torch.eye(3, device=covariance.device, dtype=covariance.dtype)
    return stable / stable.diagonal(dim1=-2, dim2=-1).sum(-1)[..., None, None]


def decompose(covariance: Float[Tensor, "*k 3 3"]) -> Decomposition:
    """Size, shape and orientation of covariances (the paper's geometric decomposition)."""
    stable = covariance + EPSILON * torch.eye(3, device=covariance.device, dtype=covariance.dtype)
    values, vectors = torch.linalg.eigh(stable)
    values, vectors = values.flip(-1), vectors.flip(-1)
    # eigh leaves the sign open; a rotation (determinant 1) is what people can turn into angles.
    vectors = torch.cat([vectors[..., :2], torch.linalg.det(vectors)[..., None, None] * vectors[..., 2:]], -1)
    size = values.sum(-1)
    return Decomposition(size, values / size[..., None], vectors)


def ellipsoid_semi_axes(covariance: Float[Tensor, "*k 3 3"]) -> Float[Tensor, "*k 3"]:
    """Semi-axes sqrt(5 lambda), largest first, of the uniform ellipsoid with this covariance."""
    return (5 * torch.linalg.eigvalsh(covariance).flip(-1).clamp_min(0)).sqrt()
