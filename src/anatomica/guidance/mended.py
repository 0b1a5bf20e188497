"""Mending in the latent: what repair would change in a label map is asked of the field instead.

Repair knows from training patients what a label map should look like where it is wrong: a lumen laid open, a
branch in two parts, a vertebra under two labels. Written into the voxels it holds on one grid only, and may
cost a target that was met. Here each voxel that repair would change is a residual beside those of the
constraints, so that one step of the latent, in the prior's metric, sets right both, on every grid.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import torch
from jaxtyping import Float, Int64, UInt8
from torch import Tensor

from anatomica.guidance.prediction import Prediction
from anatomica.guidance.residuals import LEVEL_TOLERANCE, SURE, Probe
from anatomica.measurement.placing import Tissues
from anatomica.prior.field import decode_labels

Mend = Callable[[UInt8[np.ndarray, "n n n"]], UInt8[np.ndarray, "n n n"]]
"""From label indices to those that they should be."""
MOST_VOXELS = 200
"""Voxels at most that are residuals at a time; of more, every so many-th."""
FARTHEST = 12.0
"""No voxel counts as more tolerances than this: one that is far off should not outweigh the rest."""


@dataclass(frozen=True, eq=False)
class WrongVoxels:
    """The voxels of one sample's n^3 label map that repair would change, the labels that it gives them, and
    the classes' shares of the whole map."""

    centres: Float[Tensor, "v 3"]
    labels: Int64[Tensor, " v"]
    mass: Float[Tensor, "1 C"]

    @classmethod
    def of(cls, now: Prediction, n: int, mend: Mend) -> WrongVoxels:
        latent = now.model.scaler.restore(now.z)
        found = decode_labels(now.model.autoencoder.field, latent, n)[0].cpu().numpy()
        wanted = mend(found)
        wrong = np.argwhere(found != wanted)
        wrong = wrong[:: -(-len(wrong) // MOST_VOXELS) or 1]
        labels = torch.from_numpy(wanted[tuple(wrong.T)].astype(np.int64))
        mass = torch.from_numpy(np.bincount(found.ravel(), minlength=len(now.model.table.names)) / n**3)
        centres = (torch.from_numpy(wrong).to(now.z) + 0.5) / n
        return cls(centres, labels.to(now.z.device), mass[None].to(now.z))

    def __len__(self) -> int:
        return len(self.labels)

    def probes(self, now: Prediction) -> list[tuple[Probe, Tissues]]:
        """Residuals "this voxel has that label": how far its margin is from being clearly above zero."""
        found = []
        for label in self.labels.unique().tolist():
            points, tissues = self.centres[self.labels == label][None], Tissues((label,))
            S = now.probability(points, tissues, "margin").clamp(SURE, 1 - SURE)
            short = (LEVEL_TOLERANCE - S.logit()).clamp_min(0) / LEVEL_TOLERANCE
            slope = (short > 0) / (LEVEL_TOLERANCE * S * (1 - S))
            owner = torch.arange(points.shape[1], device=points.device)
            rho = -short.clamp_max(FARTHEST)
            found.append((Probe(rho, points, slope[:, None], owner, "margin"), tissues))
        return found
