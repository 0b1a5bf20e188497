"""Traces: what each clean prediction would measure while sampling. Behind curves and the progress bar.

Soft and on few points, so that looking costs little beside a step; certificates are hard and are in
`measurement.certificate`.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace

import torch
from jaxtyping import Float
from numpy import ndarray
from torch import Tensor

from anatomica.guidance.prediction import Prediction
from anatomica.measurement.domains.domain import Grid
from anatomica.measurement.homology import Diagram, betti_numbers, persistence
from anatomica.measurement.moments import measure_moments
from anatomica.measurement.placing import Resolved
from anatomica.prior.zoo import Model
from anatomica.spec.quantities import QUANTITIES, BettiPrior

POINTS = 4096
"""The most points that a constraint's moments are measured on."""
TOPOLOGY_LOOKS = 8
"""Features are counted on the constraint's whole grid, so only so often in a run."""
SKIP = 0.02
"""Variation below which a margin is not decoded: no feature longer than this is missed."""
TOPOLOGY = "topology"
"""The quantity whose error is the number of wrong features."""
UNITS = {q.title: q.error_unit for q in QUANTITIES} | {TOPOLOGY: "wrong features"}


@dataclass(frozen=True)
class Error:
    """One quantity of one constraint at one moment, the worst of its domains, in `UNITS`."""

    constraint: str
    quantity: str
    error: float
    tolerance: float


@dataclass(frozen=True)
class Curve:
    """Errors of one quantity of one constraint after these sampling steps; the last is the end."""

    constraint: str
    quantity: str
    tolerance: float
    steps: tuple[int, ...]
    errors: tuple[float, ...]

    def to_dict(self) -> dict:
        return asdict(self) | {"unit": UNITS[self.quantity]}


@dataclass(frozen=True, eq=False)
class DomainDiagram:
    """Persistence diagram of the finished sample's margin in one domain, and what was wanted."""

    constraint: str
    domain: int
    wanted: tuple[int | None, int | None, int | None]
    diagram: Diagram

    def to_dict(self) -> dict:
        rows = zip(
            *(x.tolist() for x in (self.diagram.dim, self.diagram.birth, self.diagram.death)), strict=True
        )
        pairs = [{"dim": d, "birth": round(b, 4), "death": round(e, 4)} for d, b, e in rows]
        return {"constraint": self.constraint, "domain": self.domain, "wanted": self.wanted, "pairs": pairs}


@dataclass(frozen=True, eq=False)
class Seen:
    """One sample at one moment."""

    errors: list[Error]
    diagrams: list[DomainDiagram]


class Trace:
    """Looks at the clean predictions of one batch, step by step, and remembers what it saw."""

    def __init__(self, model: Model, resolved: Sequence[Resolved]) -> None:
        self.model, self.resolved = model, tuple(resolved)
        self.looks: list[tuple[int, list[Seen]]] = []

    def look(self, step: int, count: int, z: Float[Tensor, "b c h w d"]) -> list[list[Error]]:
        """Errors of every sample after `step` of `count` steps; features are counted only now and then."""
        every = math.ceil(count / TOPOLOGY_LOOKS)
        seen = see(self.model, self.resolved, z, topology=step % every == 0)
        self.looks.append((step, seen))
        return [s.errors for s in seen]

    def finish(self, step: int, z: Float[Tensor, "b c h w d"]) -> None:
        """The finished latents, with their persistence diagrams."""
        self.looks.append((step, see(self.model, self.resolved, z, diagrams=True)))

    def diagrams(self, sample: int) -> tuple[DomainDiagram, ...]:
        """Persistence diagrams of one finished sample."""
        return tuple(self.looks[-1][1][sample].diagrams)

    def curves(self, sample: int) -> tuple[Curve, ...]:
        """What was seen of one sample of the batch."""
        found: dict[tuple[str, str], list[tuple[int, Error]]] = {}
        for step, seen in self.looks:
            for e in seen[sample].errors:
                found.setdefault((e.constraint, e.quantity), []).append((step, e))
        return tuple(
            Curve(*key, rows[0][1].tolerance, tuple(n for n, _ in rows), tuple(e.error for _, e in rows))
            for key, rows in found.items()
        )


@torch.no_grad()
def see(
    model: Model,
    resolved: Sequence[Resolved],
    z: Float[Tensor, "b c h w d"],
    topology: bool = True,
    diagrams: bool = False,
) -> list[Seen]:
    """Errors of standardised clean latents: volumes and spreads in %, centroids in mm, shapes as such,
    topology as the number of features too many or too few; and with `diagrams` their persistence diagrams."""
    now = Prediction.of(model, z)
    out = [Seen([], []) for _ in z]
    for r in resolved:
        for seen, errors in zip(out, _geometric(now, r), strict=True):
            seen.errors.extend(errors)
        if r.wanted.betti is None or not topology:
            continue
        X = r.domains.to(now.features).points()
        for sample, seen in enumerate(out):
            one = now.sample(sample)
            found = [(k, one.margin(X[k][None], r, SKIP)[0].cpu().numpy()) for k in r.valid_domains]
            wrong = sum(_wrong(S, r.wanted.betti) for _, S in found)
            seen.errors.append(Error(r.constraint.name, TOPOLOGY, float(wrong), 0.0))
            if diagrams:
                seen.diagrams.extend(_diagram(S, r, k) for k, S in found)
    return out


def _geometric(now: Prediction, r: Resolved) -> list[list[Error]]:
    name, allowed = r.constraint.name, r.constraint.tolerance
    if not r.wanted.any_moment:
        return [[] for _ in range(len(now))]
    grid = coarser(r.domains.grid, r.domains.count)
    domains = replace(r.domains, grid=grid)
    X = domains.to(now.features).points()
    S = now.probability(X.reshape(1, -1, 3).expand(len(now), -1, 3), r, "sum")
    m = measure_moments(S.view(len(now), *X.shape[:-1]).double().cpu(), domains)
    edge_mm = now.model.frame.edge_mm
    least, valid = r.constraint.mass_threshold, r.domains.valid
    columns = [
        (q.title, q.error(q.measured(m, domains), wanted.to(m.mass), edge_mm, least), allowed.of(q))
        for q, wanted in r.wanted.rows
    ]
    return [
        [Error(name, what, float(off[b][valid].max()), most) for what, off, most in columns if valid.any()]
        for b in range(len(now))
    ]


def _wrong(S: Float[ndarray, "a e g"], prior: BettiPrior) -> int:
    """Features too many or too few in the structure that the label map will have."""
    both = zip(betti_numbers(S > 0.5), prior.numbers, strict=True)
    return sum(abs(found - wanted) for found, wanted in both if wanted is not None)


def _diagram(S: Float[ndarray, "a e g"], r: Resolved, k: int) -> DomainDiagram:
    assert r.wanted.betti is not None
    diagram = persistence(S, min_persistence=SKIP, top=100)
    assert isinstance(diagram, Diagram)
    return DomainDiagram(r.constraint.name, k, r.wanted.betti.numbers, diagram)


def coarser(grid: Grid, domains: int, most: int = POINTS) -> Grid:
    """The grid with every sampled axis thinned alike, so that all domains together have about `most`."""
    axes = sum(n > 1 for n in grid)
    share = (most / (domains * math.prod(grid))) ** (1 / max(axes, 1))
    a, e, g = (n if n == 1 or share >= 1 else max(2, round(n * share)) for n in grid)
    return a, e, g
