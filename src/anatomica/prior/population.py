"""The training population: the moments of every tissue of every patient, kept in a model's folder."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import torch
from jaxtyping import Float, UInt8
from torch import Tensor

from anatomica.anatomy.labels import LabelTable

PERCENTILES = (1, 5, 25, 50, 75, 95, 99)


def label_moments(labels: UInt8[Tensor, "n n n"], classes: int) -> Float[np.ndarray, "C 10"]:
    """Mass (fraction of the cube), centroid x y z and covariance xx yy zz xy xz yz ([0,1] units) per class.

    An absent class has mass 0 and NaN otherwise.
    """
    n = labels.shape[0]
    flat = labels.flatten().long()
    r = (torch.arange(n, dtype=torch.float64) + 0.5) / n
    x, y, z = (g.flatten() for g in torch.meshgrid(r, r, r, indexing="ij"))
    count = torch.bincount(flat, minlength=classes).double()

    def mean(values: Tensor) -> Tensor:
        return torch.bincount(flat, weights=values, minlength=classes) / count

    first = [mean(v) for v in (x, y, z)]
    pairs = ((0, 0), (1, 1), (2, 2), (0, 1), (0, 2), (1, 2))
    axes = (x, y, z)
    second = [mean(axes[a] * axes[b]) - first[a] * first[b] for a, b in pairs]
    out = torch.stack([count / flat.numel(), *first, *second], dim=1)
    out[count == 0, 1:] = torch.nan
    return out.numpy()


def semi_axes(moments: Float[np.ndarray, "*m 10"]) -> Float[np.ndarray, "*m 3"]:
    """Of the ellipsoids with these covariances, shortest first, in edges of the cube.

    A solid ellipsoid with semi-axis a has the variance a^2 / 5 along it.
    """
    xx, yy, zz, xy, xz, yz = np.moveaxis(moments[..., 4:], -1, 0)
    covariance = np.stack([xx, xy, xz, xy, yy, yz, xz, yz, zz], axis=-1).reshape(*xx.shape, 3, 3)
    return np.sqrt(5 * np.maximum(np.linalg.eigvalsh(covariance), 0))


def population_moments(labels: UInt8[Tensor, "m n n n"], classes: int) -> Float[Tensor, "m C 10"]:
    """`label_moments` of every patient: what a model's folder keeps of its training set."""
    return torch.from_numpy(np.stack([label_moments(one, classes) for one in labels])).float()


def union_moments(
    moments: Float[Tensor, "m C 10"], selection: Sequence[int]
) -> tuple[Float[Tensor, " k"], Float[Tensor, "k 3"], Float[Tensor, "k 3 3"]]:
    """Mass, centroid and covariance of some tissues together, in the k patients that have any of them.

    Raw moments add up: m, m p and m (Sigma + p p^T).
    """
    chosen = moments[:, list(selection)].double().nan_to_num()
    chosen = chosen[chosen[..., 0].sum(dim=1) > 0]
    mass, p = chosen[..., 0], chosen[..., 1:4]
    xx, yy, zz, xy, xz, yz = chosen[..., 4:].unbind(-1)
    covariance = torch.stack([xx, xy, xz, xy, yy, yz, xz, yz, zz], dim=-1).unflatten(-1, (3, 3))
    total = mass.sum(dim=1)
    share = mass / total[:, None]
    centre = (share[..., None] * p).sum(dim=1)
    raw = (share[..., None, None] * (covariance + p[..., None] * p[..., None, :])).sum(dim=1)
    return total, centre, raw - centre[..., None] * centre[..., None, :]


def population_statistics(
    moments: Float[Tensor, "m C 10"], table: LabelTable, edge_mm: float
) -> dict[str, dict[str, Any]]:
    """For each tissue: share of patients that have it, and its volume's percentiles, mean and SD (mL)."""
    out: dict[str, dict[str, Any]] = {}
    for c, name in enumerate(table.names):
        if c == 0:
            continue
        mass = moments[:, c, 0].double().numpy()
        volumes = mass[mass > 0] * edge_mm**3 / 1000
        if not len(volumes):
            out[name] = {"present": 0.0}
            continue
        out[name] = {
            "present": round(len(volumes) / len(moments), 4),
            "volume_ml": {str(p): _short(np.percentile(volumes, p)) for p in PERCENTILES},
            "volume_mean_ml": _short(volumes.mean()),
            "volume_sd_ml": _short(volumes.std()),
        }
    return out


def _short(value: float) -> float:
    return float(f"{value:.6g}")
