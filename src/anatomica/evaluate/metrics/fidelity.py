"""Geometric fidelity: the L1 norm between target and measured moments (paper, "Evaluation Metrics")."""

from __future__ import annotations

from typing import NamedTuple

import torch
from jaxtyping import Bool, Float
from torch import Tensor

from anatomica.measurement.moments import Moments


class Fidelity(NamedTuple):
    """Mean L1 error over the valid substructures, in cube units; NaN where none is valid."""

    mass: Float[Tensor, "*b"]
    centroid: Float[Tensor, "*b"]
    covariance: Float[Tensor, "*b"]


SCALES = Fidelity(torch.tensor(1e5), torch.tensor(1e4), torch.tensor(1e5))
"""The paper's tables show mass x 1e5, centroid x 1e4, covariance x 1e5."""


def fidelity(target: Moments, measured: Moments, valid: Bool[Tensor, "*b k"]) -> Fidelity:
    """|m - m'|, sum |p - p'| over 3 axes, sum |Sigma - Sigma'| over 9 entries; a mean over valid domains.

    The covariance is the one with size in it (in units of L^2): the paper's numbers are of that magnitude.
    A substructure that is not there has no centroid: it counts with all of its mass and covariance, and the
    centroid's mean is over the others.
    """
    mass = (measured.mass - target.mass).abs()
    centroid = (measured.centroid - target.centroid).abs().sum(-1)
    covariance = (measured.covariance - target.covariance).abs().sum((-2, -1))
    there = valid & (measured.mass > 0)
    return Fidelity(_mean(mass, valid), _mean(centroid, there), _mean(covariance, valid))


def _mean(x: Float[Tensor, "*b k"], where: Bool[Tensor, "*b k"]) -> Float[Tensor, "*b"]:
    return torch.where(where, x, 0).sum(-1) / where.sum(-1).to(x)
