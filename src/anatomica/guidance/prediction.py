"""A clean prediction seen through the neural field: the one place where guidance decodes points."""

from __future__ import annotations

from dataclasses import dataclass, replace

import torch
from jaxtyping import Bool, Float
from torch import Tensor

from anatomica.guidance.adaptive_grid import sample_where_it_varies
from anatomica.measurement.parse import Union, membership
from anatomica.measurement.placing import Resolved, Tissues
from anatomica.prior.field import CHUNK_POINTS
from anatomica.prior.zoo import Model


@dataclass(frozen=True, eq=False)
class Prediction:
    """Standardised clean latents `z` of a model, and the features that its field reads points from."""

    model: Model
    z: Float[Tensor, "b c h w d"]
    features: Float[Tensor, "b x y z k"]

    @classmethod
    def of(cls, model: Model, z: Float[Tensor, "b c h w d"]) -> Prediction:
        return cls(model, z, model.autoencoder.field.prepare(model.scaler.restore(z)))

    def __len__(self) -> int:
        return len(self.z)

    def sample(self, i: int) -> Prediction:
        """One sample of the batch."""
        return replace(self, z=self.z[i : i + 1], features=self.features[i : i + 1])

    @torch.no_grad()
    def probability(
        self,
        points: Float[Tensor, "b p 3"],
        r: Resolved | Tissues,
        union: Union,
        temperature: float | None = None,
    ) -> Float[Tensor, "b p"]:
        """How far points belong to a constraint's structure; background outside the cube.

        Decoded in cache-sized chunks. `temperature` divides the logits (None: the constraint's own).
        """
        heat, field = r.temperature if temperature is None else temperature, self.model.autoencoder.field
        parts = [
            membership(field.at(self.features, p), r.selection, union, heat)
            for p in points.split(max(1, CHUNK_POINTS // len(points)), dim=1)
        ]
        return torch.cat(parts, dim=1) * inside(points)

    def margin(
        self, X: Float[Tensor, "b a e g 3"], r: Resolved, tolerance: float
    ) -> Float[Tensor, "b a e g"]:
        """The structure's margin on one domain's grid, above 1/2 where the label map has it.

        It is decoded where it varies by more than the tolerance.
        """

        def of_sample(i: int) -> Tensor:
            one = self.sample(i)
            at = lambda points: one.probability(points[None], r, "margin")[0]  # noqa: E731
            return sample_where_it_varies(at, X[i], tolerance, self.features.shape[-2])

        return torch.stack([of_sample(i) for i in range(len(X))])


def inside(points: Float[Tensor, "*p 3"]) -> Bool[Tensor, "*p"]:
    """Which points lie in the cube."""
    return ((points >= 0) & (points <= 1)).all(dim=-1)
