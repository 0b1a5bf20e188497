"""Frechet morphological distance (FMD): two populations as Gaussians in the space of tissue moments."""

from __future__ import annotations

import numpy as np
import torch
from jaxtyping import Float, UInt8
from torch import Tensor

from anatomica.measurement.moments import decompose
from anatomica.prior.population import label_moments


def morphology(labels: UInt8[Tensor, "m n n n"], classes: int) -> Float[np.ndarray, "m f"]:
    """Mass, centroid and normalised eigenvalues (largest first) of every tissue: one row per map.

    Seven numbers per tissue. An absent tissue has mass 0; its centroid and eigenvalues are NaN.
    """
    moments = torch.from_numpy(np.stack([label_moments(m, classes) for m in labels])[:, 1:])
    xx, yy, zz, xy, xz, yz = moments[..., 4:].unbind(-1)
    covariance = torch.stack([xx, xy, xz, xy, yy, yz, xz, yz, zz], dim=-1).unflatten(-1, (3, 3))
    shape = decompose(torch.nan_to_num(covariance)).shape
    shape = torch.where(moments[..., :1] > 0, shape, torch.nan)
    return torch.cat([moments[..., :4], shape], dim=-1).flatten(1).numpy()


def standardise(
    features: Float[np.ndarray, "m f"], real: Float[np.ndarray, "k f"]
) -> Float[np.ndarray, "m g"]:
    """z-scores by the real set. Features that do not vary there are left out.

    Missing values of an absent tissue count as the real mean: the absence itself shows in the mass.
    """
    seen = ~np.isnan(real)
    count = seen.sum(0)
    mean = np.where(seen, real, 0).sum(0) / np.maximum(count, 1)
    std = np.sqrt(np.where(seen, (real - mean) ** 2, 0).sum(0) / np.maximum(count, 1))
    kept = std > 1e-9
    return np.nan_to_num((features[:, kept] - mean[kept]) / std[kept])


def frechet_distance(a: Float[np.ndarray, "m f"], b: Float[np.ndarray, "k f"]) -> float:
    """|mu_a - mu_b|^2 + tr(A + B - 2 sqrt(A B)) of the Gaussians with the two sets' means and covariances."""
    A, B = np.atleast_2d(np.cov(a.T)), np.atleast_2d(np.cov(b.T))
    # sqrt(A B) has the trace of sqrt(R A R) with R = sqrt(B), which is symmetric; low ranks are fine.
    values, vectors = np.linalg.eigh(B)
    R = (vectors * np.sqrt(np.clip(values, 0, None))) @ vectors.T
    cross = np.sqrt(np.clip(np.linalg.eigvalsh(R @ A @ R), 0, None)).sum()
    return float(((a.mean(0) - b.mean(0)) ** 2).sum() + np.trace(A) + np.trace(B) - 2 * cross)


def fmd(samples: Float[np.ndarray, "m f"], real: Float[np.ndarray, "k f"]) -> float:
    """FMD of two sets of `morphology` rows, in units of the real set's standard deviations.

    It grows as sets shrink: compare it only with sets of the same size, and with the floor of real ones.
    """
    return frechet_distance(standardise(samples, real), standardise(real, real))
