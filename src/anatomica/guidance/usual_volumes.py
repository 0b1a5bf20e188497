"""Usual volumes: no tissue becomes smaller or larger than in every training patient while others are guided.

What is asked of one tissue moves the latent, and what nobody asks for may vanish or grow: a branch of the
aorta, a vertebra that takes its neighbour's bone. The training patients' least and most volume of each tissue
are residuals beside those of the constraints, zero between the two.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
from jaxtyping import Float
from torch import Tensor

from anatomica.guidance.outside import cube_points
from anatomica.guidance.prediction import Prediction
from anatomica.guidance.residuals import UNSATURATED, Probe
from anatomica.measurement.placing import Tissues
from anatomica.prior.field import CHUNK_POINTS
from anatomica.prior.zoo import Model

GRID = 24
"""Points along the cube's axes at which volumes are looked at."""
HEAT = 4.0
"""Divides the logits of a tissue that is too small: where there is next to nothing of it, its probabilities
are too flat to have a slope."""
TOLERANCE = 0.1
"""A volume this far beyond its limit, as a share of it, is one tolerance off."""


@dataclass(frozen=True, eq=False)
class UsualVolumes:
    """Least and most share of the cube that each class has in training patients, background included.

    Where a patient may lack a tissue the least is zero.
    """

    least: Float[Tensor, " C"]
    most: Float[Tensor, " C"]

    @classmethod
    def of(cls, model: Model) -> UsualVolumes | None:
        """None if the model knows no population."""
        if model.population is None:
            return None
        mass = model.population[:, :, 0].to(model.scaler.mean)
        return cls(mass.amin(dim=0), mass.amax(dim=0))

    def unusual(self, mass: Float[Tensor, "b C"]) -> bool:
        """Whether a tissue is more than a tolerance beyond its limits."""
        limit = mass.clamp(self.least, self.most)
        return bool(((mass - limit).abs() > TOLERANCE * limit)[:, 1:].any())

    @torch.no_grad()
    def probes(
        self, now: Prediction, mass: Float[Tensor, "b C"] | None = None
    ) -> list[tuple[Probe, Tissues]]:
        """Residuals of the tissues that are beyond their limits in some sample.

        `mass` is the classes' share of the cube, of a label map; left out, the soft one.
        """
        X = cube_points(GRID, now).reshape(-1, 3)
        field = now.model.autoencoder.field
        chunks = X.split(max(1, CHUNK_POINTS // len(now)))
        logits = torch.cat([field.at(now.features, p.expand(len(now), -1, 3)) for p in chunks], dim=1)
        mass = logits.softmax(-1).mean(dim=1) if mass is None else mass
        limit = mass.clamp(self.least, self.most)
        tolerance = TOLERANCE * limit.clamp_min(1 / len(X))
        rho = (mass - limit) / tolerance
        found = []
        for c in range(1, len(self.least)):
            for sign, heat in ((-1, HEAT), (1, 1.0)):
                off = rho[:, c] * (rho[:, c].sign() == sign)
                if off.any():
                    S = (logits / heat).softmax(-1)[..., c]
                    moving = (S * (1 - S) > UNSATURATED).any(dim=0).nonzero()[:, 0]
                    slope = ((off != 0) / (tolerance[:, c] * len(X)))[:, None, None].expand(
                        -1, 1, len(moving)
                    )
                    owner = torch.zeros(len(moving), dtype=torch.long, device=S.device)
                    points = X[moving].expand(len(S), -1, 3)
                    found.append((Probe(off[:, None], points, slope, owner, "sum", heat), Tissues((c,))))
        return found
