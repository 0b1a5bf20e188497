"""The two ways to guide a model: the paper's gradient with weights, and Gauss-Newton with tolerances."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Literal

import torch
from torch import Tensor

from anatomica.frame import Frame
from anatomica.gauss_newton import Settings, gauss_newton, newton_step
from anatomica.guidance import Gradient, corrected, guided
from anatomica.labels import anatomy
from anatomica.models.zoo import Model
from anatomica.potentials import composite_potential
from anatomica.resolve import Resolved
from anatomica.sampler import Denoiser
from anatomica.substructures import Variant, parser

Solver = Literal["gauss-newton", "gradient"]


@dataclass(frozen=True)
class Guidance:
    """How constraints act on sampling. `polish` steps end it: Newton steps on the finished latent."""

    solver: Solver = "gauss-newton"
    variant: Variant = "L"
    gradient: Gradient = "denoiser"
    newton: Settings = field(default_factory=Settings)
    polish: int = 4

    def denoiser(self, model: Model, resolved: Sequence[Resolved]) -> Denoiser:
        """The model's denoiser, guided."""
        if self.solver == "gauss-newton":
            return corrected(model.denoiser, gauss_newton(model, resolved, self.newton))
        union = "max" if self.variant == "V" else self.newton.union
        parse = parser(model, resolved, self.variant, union)
        return guided(model.denoiser, lambda z: composite_potential(parse(z), resolved), self.gradient)

    @torch.no_grad()
    def finish(self, model: Model, resolved: Sequence[Resolved], z: Tensor) -> Tensor:
        """The last polish of clean latents (none for the paper's solver)."""
        if self.solver != "gauss-newton":
            return z
        frame = Frame.model(anatomy(model.anatomy), model.n)
        gentle = replace(self.newton, radius=self.newton.radius / 2)
        for _ in range(self.polish):
            z = z + newton_step(model, resolved, frame, z, gentle)
        return z
