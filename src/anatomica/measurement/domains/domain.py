"""Control domains: template point grids placed by affine parameters A = [R, s, t]."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from jaxtyping import Bool, Float
from torch import Tensor

Grid = tuple[int, int, int]


@dataclass(frozen=True, eq=False)
class Domains:
    """K control domains that share one template grid, optionally with leading sample axes.

    X_k = R_k diag(s_k) X_temp + t_k in the cube's coordinates [0, 1]^3: `s` are the box's edge lengths, `t`
    its centre. An invalid domain (a ray that missed the wall, ...) keeps its place, and `reasons` says why.
    """

    R: Float[Tensor, "*b k 3 3"]
    s: Float[Tensor, "*b k 3"]
    t: Float[Tensor, "*b k 3"]
    grid: Grid
    valid: Bool[Tensor, "*b k"]
    reasons: tuple[str, ...]

    @property
    def J(self) -> Float[Tensor, "*b k 3 3"]:
        """Rotation-scale matrix R diag(s)."""
        return self.R * self.s.unsqueeze(-2)

    @property
    def count(self) -> int:
        return self.s.shape[-2]

    def points(self) -> Float[Tensor, "*b k a e g 3"]:
        """The domains' point grids X."""
        x = template(self.grid).to(self.s)
        return torch.einsum("...kij,aegj->...kaegi", self.J, x) + self.t[..., None, None, None, :]

    def is_whole_cube(self, n: int) -> bool:
        """Whether the points are the voxel centres of an n^3 cube, so that slicing is the identity."""
        identity = torch.eye(3).to(self.R).expand_as(self.R)
        return (
            self.grid == (n, n, n)
            and bool((self.s == 1).all())
            and bool((self.t == 0.5).all())
            and bool((identity == self.R).all())
        )

    def to(self, like: Tensor) -> Domains:
        """The same domains with the dtype and device of `like`."""
        return Domains(
            self.R.to(like),
            self.s.to(like),
            self.t.to(like),
            self.grid,
            self.valid.to(like.device),
            self.reasons,
        )


def template(grid: Grid) -> Float[Tensor, "a e g 3"]:
    """X_temp: cell centres of a unit cube centred at 0; an axis of size 1 has its point at 0."""
    axes = [(torch.arange(n, dtype=torch.float64) + 0.5) / n - 0.5 for n in grid]
    return torch.stack(torch.meshgrid(*axes, indexing="ij"), dim=-1)


def make(R: Tensor, s: Tensor, t: Tensor, grid: Grid, reasons: Sequence[str]) -> Domains:
    """Domains from K affines; a domain with a reason is invalid, and its affine is made harmless."""
    valid = torch.tensor([not reason for reason in reasons], dtype=torch.bool)
    keep = valid[:, None]
    R = torch.where(keep[..., None], R.double(), torch.eye(3, dtype=torch.float64))
    s = torch.where(keep, s.double().expand(len(reasons), 3), torch.ones(3, dtype=torch.float64))
    t = torch.where(keep, t.double(), torch.full((3,), 0.5, dtype=torch.float64))
    return Domains(R, s, t, grid, valid, tuple(reasons))


def invalid(count: int, grid: Grid, reason: str) -> Domains:
    """`count` domains that could not be placed, all for the same reason."""
    zeros = torch.zeros(count, 3)
    return make(torch.zeros(count, 3, 3), zeros, zeros, grid, [reason] * count)


def stack(domains: Sequence[Domains]) -> Domains:
    """Give every sample its own domains: a new leading axis over same-sized Domains."""
    first = domains[0]
    return Domains(
        torch.stack([d.R for d in domains]),
        torch.stack([d.s for d in domains]),
        torch.stack([d.t for d in domains]),
        first.grid,
        torch.stack([d.valid for d in domains]),
        tuple(reason for d in domains for reason in d.reasons),
    )
