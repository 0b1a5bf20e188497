"""What the training population looks like: volumes and moments a tissue, kept in a model's card."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
from jaxtyping import Float, UInt8
from torch import Tensor

from anatomica.labels import LabelTable

PERCENTILES = (1, 5, 25, 50, 75, 95, 99)
MOMENTS = ("mass", "x", "y", "z", "xx", "yy", "zz", "xy", "xz", "yz")


def label_moments(labels: UInt8[Tensor, "n n n"], classes: int) -> Float[np.ndarray, "C 10"]:
    """Mass (fraction of the cube), centroid and covariance ([0,1] units) a class; NaN where it is absent."""
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


def population_statistics(
    labels: UInt8[Tensor, "m n n n"], table: LabelTable, edge_mm: float
) -> dict[str, dict[str, Any]]:
    """For each tissue: share of patients that have it, volume percentiles (mL), mean and covariance of the
    moments in MOMENTS' order over the patients that have it.
    """
    moments = np.stack([label_moments(m, len(table)) for m in labels])
    out: dict[str, dict[str, Any]] = {}
    for c, name in enumerate(table.names):
        if c == 0:
            continue
        rows = moments[moments[:, c, 0] > 0, c]
        if not len(rows):
            out[name] = {"present": 0.0}
            continue
        volumes = rows[:, 0] * edge_mm**3 / 1000
        covariance = np.cov(rows.T) if len(rows) > 1 else np.zeros((10, 10))
        out[name] = {
            "present": round(len(rows) / len(moments), 4),
            "volume_ml": {str(p): _short(np.percentile(volumes, p)) for p in PERCENTILES},
            "volume_mean_ml": _short(volumes.mean()),
            "volume_sd_ml": _short(volumes.std()),
            "moments_mean": [_short(v) for v in rows.mean(0)],
            "moments_covariance": [[_short(v) for v in row] for row in covariance],
        }
    return out


def _short(value: float) -> float:
    return float(f"{value:.6g}")
