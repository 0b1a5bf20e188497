"""The two ways to guide a model: the paper's gradient with weights, and Gauss-Newton with tolerances."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Literal

from torch import Tensor

from anatomica.guidance.gauss_newton import Settings, gauss_newton
from anatomica.guidance.guided import corrected, guided
from anatomica.guidance.polish import polish
from anatomica.guidance.potentials import composite_potential
from anatomica.guidance.substructures import Variant, parser
from anatomica.measurement.goals import Goal
from anatomica.measurement.placing import Resolved
from anatomica.prior.sampler import Denoiser
from anatomica.prior.zoo import Model

Solver = Literal["gauss-newton", "gradient", "none"]
POLISH = 48
"""Most steps of the last polish."""


@dataclass(frozen=True)
class Guidance:
    """How constraints act on sampling. `polish` steps end it: Newton steps on the finished latent.

    Left out, Gauss-Newton has the polish and the paper's gradient has none. With the solver `none` sampling
    is unconditional, and only the polish acts: the comparison that shows what guidance itself gives.
    """

    solver: Solver = "gauss-newton"
    variant: Variant = "L"
    newton: Settings = field(default_factory=Settings)
    polish: int | None = None

    @property
    def polish_steps(self) -> int:
        return (POLISH if self.solver == "gauss-newton" else 0) if self.polish is None else self.polish

    def denoiser(
        self, model: Model, resolved: Sequence[Resolved], goals: Sequence[Sequence[Goal]] = ()
    ) -> Denoiser:
        """The model's denoiser, guided; `goals` are every sample's named quantities."""
        if self.solver == "none":
            return model.denoiser
        if self.solver == "gauss-newton":
            newton = self.newton
            if not any(r.wanted.any_moment for r in resolved) and not any(goals):
                # A count moves single voxels, moments move organs: only these have far to go.
                newton = replace(newton, reach=0.0)
            return corrected(model.denoiser, gauss_newton(model, resolved, newton, goals))
        parse = parser(model, resolved, self.variant, "max")
        return guided(model.denoiser, lambda z: composite_potential(parse(z), resolved))

    def finish(
        self,
        model: Model,
        resolved: Sequence[Resolved],
        z: Tensor,
        n: int,
        goals: Sequence[Sequence[Goal]] = (),
    ) -> Tensor:
        """The last polish of clean latents that become n^3 label maps."""
        if not self.polish_steps:
            return z
        return polish(model, resolved, z, n, self.newton, self.polish_steps, goals)
