"""The private form of a training population: a Gaussian fitted to all patients together, and no patient.

A patient is described by numbers that may take any value: for every tissue whether it is there, the logarithm
of its mass, its centroid, and the log-Cholesky factor of its covariance (Pinheiro and Bates 1996,
"Unconstrained parametrizations for variance-covariance matrices"). Kept are their means, their covariance,
and the 1st and 99th percentile of every tissue's mass. What compares a label map with the population draws
made-up patients from that.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import torch
from jaxtyping import Float
from torch import Tensor

from anatomica.errors import AnatomicaError
from anatomica.prior.seeds import seeded

FEATURES = 11
"""Presence, log mass, centroid (3), log-Cholesky factor (6)."""
FEWEST = 20
"""Of fewer patients a Gaussian says too much of each."""
MOST_PATIENTS = 100_000


@dataclass(frozen=True, eq=False)
class Gaussian:
    """Mean and covariance of the features of C - 1 tissues, F = 11 (C - 1) numbers, over `count` patients."""

    mean: Float[Tensor, " F"]
    covariance: Float[Tensor, "F F"]
    present: Float[Tensor, " T"]
    """Share of the patients that have a tissue."""
    mass_range: Float[Tensor, "T 2"]
    """1st and 99th percentile of its mass where it is there."""
    count: int

    def patients(self, seed: int = 0) -> Float[Tensor, "m C 10"]:
        """As many made-up patients, in the form of `population_moments`; always the same ones."""
        values, vectors = torch.linalg.eigh(self.covariance.double())
        root = vectors * values.clamp_min(0).sqrt()
        noise = torch.randn(self.count, len(self.mean), generator=seeded(seed), dtype=torch.float64)
        drawn = (self.mean.double() + noise @ root.T).unflatten(1, (-1, FEATURES))
        out = torch.full((self.count, drawn.shape[1] + 1, 10), torch.nan, dtype=torch.float64)
        low, high = self.mass_range.double().unbind(1)
        mass = drawn[..., 1].exp().clamp(low, high)
        # As many have a tissue as among the patients: those in whom its presence is drawn highest.
        rank = drawn[..., 0].argsort(dim=0, descending=True).argsort(dim=0)
        there = rank < (self.present.double() * self.count).round()
        out[:, 1:, 0] = torch.where(there, mass, 0.0)
        out[:, 0, 0] = (1 - out[:, 1:, 0].sum(1)).clamp(0, 1)
        L = torch.zeros(*drawn.shape[:2], 3, 3, dtype=torch.float64)
        diagonal, below = torch.arange(3), torch.tensor([[1, 2, 2], [0, 0, 1]])
        L[..., diagonal, diagonal] = drawn[..., 5:8].clamp(-12, 1).exp()
        L[..., below[0], below[1]] = drawn[..., 8:11]
        Sigma = L @ L.mT
        parts = [Sigma[..., a, b] for a, b in ((0, 0), (1, 1), (2, 2), (0, 1), (0, 2), (1, 2))]
        rest = torch.cat([drawn[..., 2:5].clamp(0, 1), torch.stack(parts, -1)], dim=-1)
        out[:, 1:, 1:] = torch.where(there[..., None], rest, torch.nan)
        return out.float()

    def to_tensors(self) -> dict[str, Tensor]:
        kept = {"mean": self.mean, "covariance": self.covariance, "present": self.present}
        count = torch.tensor([float(self.count)])
        return {f"gaussian.{k}": v.float() for k, v in (kept | {"mass_range": self.mass_range}).items()} | {
            "gaussian.count": count
        }

    @staticmethod
    def is_in(tensors: Mapping[str, Tensor]) -> bool:
        return "gaussian.mean" in tensors

    @classmethod
    def from_tensors(cls, tensors: Mapping[str, Tensor], classes: int, path: Path) -> Gaussian:
        size = FEATURES * (classes - 1)
        shapes = {"mean": (size,), "covariance": (size, size), "present": (classes - 1,)}
        shapes |= {"mass_range": (classes - 1, 2), "count": (1,)}
        found = {name.removeprefix("gaussian."): value for name, value in tensors.items()}
        if {name: tuple(value.shape) for name, value in found.items()} != shapes:
            raise AnatomicaError(f"{path} does not hold the Gaussian of a population of {classes} classes")
        count = float(found.pop("count"))
        if not all(bool(x.isfinite().all()) for x in found.values()) or not FEWEST <= count <= MOST_PATIENTS:
            raise AnatomicaError(f"{path} holds a Gaussian with numbers that no population has")
        return cls(**found, count=int(count))


def fit_gaussian(moments: Float[Tensor, "m C 10"]) -> Gaussian:
    """The Gaussian of a population; refused of so few patients that it would describe each of them."""
    if len(moments) < FEWEST:
        raise AnatomicaError(
            f"a private population is fitted to at least {FEWEST} patients, here are {len(moments)}: train "
            "on more, or export with --not-private, which keeps numbers of single patients in the folder"
        )
    tissues = moments[:, 1:].double()
    there = tissues[..., 0] > 0
    xx, yy, zz, xy, xz, yz = tissues[..., 4:].nan_to_num().unbind(-1)
    Sigma = torch.stack([xx, xy, xz, xy, yy, yz, xz, yz, zz], dim=-1).unflatten(-1, (3, 3))
    L = torch.linalg.cholesky(Sigma + 1e-7 * torch.eye(3, dtype=torch.float64))
    parts = [L[..., a, a].log() for a in range(3)] + [L[..., a, b] for a, b in ((1, 0), (2, 0), (2, 1))]
    mass = tissues[..., 0].clamp_min(1e-9).log()
    features = torch.stack([there.double(), mass, *tissues[..., 1:4].unbind(-1), *parts], dim=-1)
    # What a patient does not have is as in the mean of those who do: it says nothing of the rest.
    weight = there[..., None].expand(features.shape).clone()
    weight[..., 0] = True
    known = torch.where(weight, features.nan_to_num(), 0.0)
    mean = known.sum(0) / weight.sum(0).clamp_min(1)
    flat = torch.where(weight, known, mean).flatten(1)
    ranges = []
    for masses in tissues[..., 0].T.numpy():
        some = masses[masses > 0]
        ranges.append(np.percentile(some, [1, 99]) if len(some) else np.zeros(2))
    return Gaussian(
        mean.flatten().float(),
        torch.cov(flat.T).reshape(flat.shape[1], -1).float(),
        there.double().mean(0).float(),
        torch.from_numpy(np.stack(ranges)).float(),
        len(moments),
    )


def read_population(tensors: Mapping[str, Tensor], classes: int, path: Path) -> Float[Tensor, "m C 10"]:
    """The patients' moments in a model's population file, or those of made-up patients by its Gaussian."""
    if Gaussian.is_in(tensors):
        return Gaussian.from_tensors(tensors, classes, path).patients()
    moments = tensors.get("moments")
    if moments is None or moments.ndim != 3 or moments.shape[1:] != (classes, 10) or not len(moments):
        raise AnatomicaError(f"{path} does not hold the moments of patients with {classes} classes")
    mass = moments[..., 0]
    # What a patient does not have has mass 0, and NaN for the rest.
    if not bool(((mass >= 0) & (mass <= 1)).all()) or not bool(moments[mass > 0].isfinite().all()):
        raise AnatomicaError(f"{path} holds moments that no patient has")
    return moments
