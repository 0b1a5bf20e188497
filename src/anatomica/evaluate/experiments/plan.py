"""What an experiment consists of: profiles say how much, methods say how, cells say what is drawn."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any

from anatomica.anatomy.catalogue import PAPER_GRID
from anatomica.errors import AnatomicaError
from anatomica.evaluate.baselines.conditioned import Conditioning
from anatomica.generation.options import Decoder
from anatomica.guidance.solver import Guidance, Solver
from anatomica.measurement.domains.domain import Grid
from anatomica.measurement.goals import Goal
from anatomica.measurement.placing import Resolved
from anatomica.prior.sampler import Denoiser, SamplingConfig
from anatomica.prior.zoo import Model
from anatomica.spec.spec import Spec


@dataclass(frozen=True)
class Profile:
    """How much of an experiment is run: `samples` of a table's cells, `sweep` of those of sweeps, `slow` of
    the cells of slow methods in both. `phantoms` is how many patients are drawn for an anatomy that no cache
    was given for, a fifth of them held out."""

    name: str
    samples: int
    slow: int
    steps: int | None
    phantoms: int
    batch: int = 8
    sweep: int = 64

    def count(self, method: Method, sweep: bool = False) -> int:
        """Samples of a method's cell."""
        return self.slow if method.slow else self.sweep if sweep else self.samples


PROFILES = {
    "quick": Profile("quick", samples=4, slow=2, steps=6, phantoms=40, sweep=2),
    "here": Profile("here", samples=128, slow=16, steps=None, phantoms=1000),
    "paper": Profile("paper", samples=128, slow=128, steps=100, phantoms=4000, sweep=128),
}


def profile(name: str, samples: int | None = None, steps: int | None = None) -> Profile:
    """A profile by name, scaled."""
    try:
        chosen = PROFILES[name]
    except KeyError:
        raise AnatomicaError(f"unknown profile {name!r}; allowed: {', '.join(PROFILES)}") from None
    if samples is not None:
        chosen = replace(chosen, samples=samples, slow=samples, sweep=samples)
    return replace(chosen, steps=steps or chosen.steps)


@dataclass(frozen=True)
class PaperGuidance(Guidance):
    """The paper's update, on points as dense for the model as the paper's are for its `resolution`.

    The paper guides a 128^3 model on grids of 64^3. What is polished and certified keeps the task's own grid,
    the same for every method.
    """

    solver: Solver = "gradient"
    resolution: int = PAPER_GRID

    def denoiser(
        self, model: Model, resolved: Sequence[Resolved], goals: Sequence[Sequence[Goal]] = ()
    ) -> Denoiser:
        scaled = [
            replace(r, domains=replace(r.domains, grid=scaled_grid(r.domains.grid, model.n, self.resolution)))
            for r in resolved
        ]
        return super().denoiser(model, scaled, goals)


@dataclass(frozen=True)
class Method:
    """A way to draw samples: unconditional, a baseline, or guided."""

    key: str
    title: str
    guidance: Guidance | None = None
    conditioning: Conditioning | None = None
    decoder: Decoder = "field"
    slow: bool = False
    """Whether a sample costs so much that the profile's smaller number is drawn."""
    judged: bool = False
    """Whether samples are drawn and judged as `generate` does: repaired, certified at n and 2n, plausible."""
    tries: int | None = 1
    """Candidates of each sample; None: as many as `generate` draws."""
    sampling: SamplingConfig | None = None
    """The sampler, if it is not the model's own."""
    tuned: bool = False
    """Whether the task's weights are those that were tuned instead of the paper's."""

    def sampled(self, model: Model) -> Model:
        """The model with this method's noise levels and churn.

        Guided samples of a column begin in a scout (`generation.windows`): 8 steps of the model's sampler,
        then only noise below 6. In levels with rho 1 scouts have up to 24 vertebrae, and 8 of 100 steps lie
        below 6; so there the levels are the model's, of which 57 do.
        """
        if self.sampling is None:
            return model
        if self.guidance is None or not model.autoencoder.config.column:
            return replace(model, sampling=self.sampling)
        churn = {key: getattr(self.sampling, key) for key in ("s_churn", "s_min", "s_max", "s_noise")}
        return replace(model, sampling=replace(model.sampling, **churn))

    def how(self, steps: int | None) -> dict[str, Any]:
        """The fields of `Options` that say how a sample is drawn, with so many steps if they are given."""
        own = self.sampling
        return {"steps": steps} if own is None else {"steps": steps or own.steps, "method": own.method}

    def identity(self) -> dict[str, Any]:
        """What of the method decides a sample, beside its sampler."""
        guidance = None if self.guidance is None else asdict(self.guidance)
        if guidance is not None and guidance["solver"] == "gradient" and not guidance["polish"]:
            del guidance["polish"]
            if not self.judged:  # mending takes Newton steps
                del guidance["newton"]
        known = {"guidance": guidance, "conditioning": self.conditioning, "decoder": self.decoder}
        return known | ({"judged": True, "tries": self.tries} if self.judged else {})


UNCONDITIONAL = Method("unconditional", "Uncond.")
GRADIENT_L = Method(
    "anatomica-l", "Anatomica-L, gradient", Guidance(solver="gradient", variant="L"), slow=True
)
GRADIENT_V = Method(
    "anatomica-v",
    "Anatomica-V, gradient",
    Guidance(solver="gradient", variant="V"),
    decoder="conv",
    slow=True,
)
NEWTON_L = Method("anatomica-gn", "Anatomica-L, Gauss-Newton", Guidance(solver="gauss-newton", variant="L"))


@dataclass(frozen=True)
class Cell:
    """One row of a table: `count` samples of a method for a task.

    `spec` is what guides, `measured` what the samples are held against; a sweep changes only the former.
    `settings` name the point of a sweep.
    """

    task: str
    method: Method
    spec: Spec
    measured: Spec
    count: int
    settings: tuple[tuple[str, Any], ...] = ()
    first: int = 0
    """The first sample's seed."""

    @property
    def name(self) -> str:
        extra = "".join(f", {k} {v}" for k, v in self.settings)
        return f"{self.task}, {self.method.title}{extra}"

    def setting(self, key: str) -> Any:
        return dict(self.settings)[key]


def reweighted(spec: Spec, **weights: float) -> Spec:
    """The spec with these loss weights multiplied."""
    made = []
    for c in spec.constraints:
        new = {key: getattr(c.weights, key) * factor for key, factor in weights.items()}
        made.append(c.model_copy(update={"weights": c.weights.model_copy(update=new)}))
    return spec.model_copy(update={"constraints": made})


def changed(spec: Spec, **update: Any) -> Spec:
    """The spec with these fields of every constraint replaced."""
    made = [c.model_copy(update=update) for c in spec.constraints]
    return spec.model_copy(update={"constraints": made})


def at_scale(spec: Spec, n: int) -> Spec:
    """The spec for a model of n^3 voxels: cubes of points as dense for it as the paper's are for 128^3.

    Thin domains keep their grids, which cost little.
    """
    made = []
    for c in spec.constraints:
        grid = scaled_grid(c.domain.grid, n)
        made.append(c.model_copy(update={"domain": c.domain.model_copy(update={"grid": grid})}))
    return spec.model_copy(update={"constraints": made})


def scaled_grid(grid: Grid, n: int, resolution: int = PAPER_GRID) -> Grid:
    """A cube of points for a model of `resolution` voxels as dense for one of n; other grids as they are.

    >>> scaled_grid((64, 64, 64), 64), scaled_grid((1, 32, 32), 64)
    ((32, 32, 32), (1, 32, 32))
    """
    edge = max(1, grid[0] * n // resolution)
    return (edge, edge, edge) if len(set(grid)) == 1 else grid


def resampled(spec: Spec, edge: int) -> Spec:
    """The spec with edge^3 points in every domain."""
    made = []
    for c in spec.constraints:
        domain = c.domain.model_copy(update={"grid": (edge, edge, edge)})
        made.append(c.model_copy(update={"domain": domain}))
    return spec.model_copy(update={"constraints": made})
