"""What an experiment consists of: profiles say how much, methods say how, cells say what is drawn."""

from __future__ import annotations

from dataclasses import asdict, dataclass, replace
from typing import Any

from anatomica.anatomy.catalogue import PAPER_GRID
from anatomica.errors import AnatomicaError
from anatomica.evaluate.baselines.conditioned import Conditioning
from anatomica.generation.options import Decoder
from anatomica.guidance.solver import Guidance
from anatomica.spec.spec import Spec


@dataclass(frozen=True)
class Profile:
    """How much of an experiment is run. `slow` is the number of samples of slow cells; `phantoms` how many
    patients are drawn for an anatomy that no cache was given for, a fifth of them held out."""

    name: str
    samples: int
    slow: int
    steps: int | None
    phantoms: int
    batch: int = 8
    sweep: int = 16
    """Samples of each point of a sweep."""


PROFILES = {
    "quick": Profile("quick", samples=4, slow=2, steps=6, phantoms=40, sweep=2),
    "here": Profile("here", samples=32, slow=16, steps=None, phantoms=1000),
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

    def identity(self) -> dict[str, Any]:
        """What of the method decides a sample."""
        guidance = None if self.guidance is None else asdict(self.guidance)
        if guidance is not None and guidance["solver"] == "gradient" and not guidance["polish"]:
            del guidance["newton"], guidance["polish"]
        known = {"guidance": guidance, "conditioning": self.conditioning, "decoder": self.decoder}
        return known | ({"judged": True, "tries": self.tries} if self.judged else {})


UNCONDITIONAL = Method("unconditional", "Uncond.")
EXPLICIT = Method("explicit", "Explicit", conditioning="explicit")
IMPLICIT = Method("implicit", "Implicit", conditioning="implicit")
GRADIENT_L = Method("anatomica-l", "Anatomica-L, gradient", Guidance(solver="gradient", variant="L"))
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
        grid = c.domain.grid
        if len(set(grid)) == 1:
            edge = max(1, grid[0] * n // PAPER_GRID)
            c = c.model_copy(update={"domain": c.domain.model_copy(update={"grid": (edge, edge, edge)})})
        made.append(c)
    return spec.model_copy(update={"constraints": made})


def resampled(spec: Spec, edge: int) -> Spec:
    """The spec with edge^3 points in every domain."""
    made = []
    for c in spec.constraints:
        domain = c.domain.model_copy(update={"grid": (edge, edge, edge)})
        made.append(c.model_copy(update={"domain": domain}))
    return spec.model_copy(update={"constraints": made})
