"""Errors while sampling: what each clean prediction would measure. Behind curves and the progress bar.

Soft and on few points, so that looking costs little beside a step; certificates are hard and in `certify`.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace

import torch
from jaxtyping import Float
from torch import Tensor

from anatomica.domains.domain import Domains, Grid
from anatomica.frame import Frame
from anatomica.homology import Diagram, betti_numbers, persistence
from anatomica.labels import anatomy
from anatomica.models.field import CHUNK_POINTS
from anatomica.models.zoo import Model
from anatomica.moments import measure_moments
from anatomica.parse import l_parse
from anatomica.potentials import betti_of
from anatomica.resolve import Resolved

POINTS = 4096
"""Most points a constraint's moments are measured on."""
TOPOLOGY_LOOKS = 8
"""Features are counted on the constraint's whole grid, so only so often in a run."""
UNITS = {"volume": "%", "centroid": "mm", "shape": "", "topology": "wrong features"}


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
class Features:
    """Persistence diagram of the finished sample's soft substructure in one domain, and what was wanted."""

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


class Watch:
    """Looks at the clean predictions of one batch, step by step, and remembers what it saw."""

    def __init__(self, model: Model, resolved: Sequence[Resolved]) -> None:
        self.model, self.resolved = model, tuple(resolved)
        self.looks: list[tuple[int, list[list[Error]]]] = []
        self.features: list[list[Features]] = []

    def look(self, step: int, count: int, z: Float[Tensor, "b c h w d"]) -> list[list[Error]]:
        """Errors of every sample after `step` of `count` steps; topology now and then alone."""
        every = math.ceil(count / TOPOLOGY_LOOKS)
        seen = soft_errors(self.model, self.resolved, z, topology=step % every == 0)
        self.looks.append((step, seen))
        return seen

    def finish(self, step: int, z: Float[Tensor, "b c h w d"]) -> None:
        """The finished latents, with their persistence diagrams."""
        self.looks.append((step, soft_errors(self.model, self.resolved, z)))
        self.features = diagrams(self.model, self.resolved, z)

    def curves(self, sample: int) -> tuple[Curve, ...]:
        """What was seen of one sample of the batch."""
        found: dict[tuple[str, str], list[tuple[int, Error]]] = {}
        for step, seen in self.looks:
            for e in seen[sample]:
                found.setdefault((e.constraint, e.quantity), []).append((step, e))
        return tuple(
            Curve(*key, rows[0][1].tolerance, tuple(n for n, _ in rows), tuple(e.error for _, e in rows))
            for key, rows in found.items()
        )


@torch.no_grad()
def soft_errors(
    model: Model, resolved: Sequence[Resolved], z: Float[Tensor, "b c h w d"], topology: bool = True
) -> list[list[Error]]:
    """Errors of standardised clean latents, a list a sample; volumes in %, centroids in mm, shapes as such,
    topology as the number of features too many or too few."""
    features = model.autoencoder.field.prepare(model.scaler.restore(z))
    frame = Frame.model(anatomy(model.anatomy), model.n)
    out: list[list[Error]] = [[] for _ in z]
    for r in resolved:
        for errors, seen in zip(out, _geometric(model, features, r, frame), strict=True):
            errors += seen
        if topology and r.wanted.betti is not None:
            for errors, volumes in zip(out, _parse(model, features, r, r.domains.grid), strict=True):
                errors.append(Error(r.constraint.name, "topology", _wrong(volumes, r), 0.0))
    return out


def _geometric(model: Model, features: Tensor, r: Resolved, frame: Frame) -> list[list[Error]]:
    wanted, name, allowed = r.wanted, r.constraint.name, r.constraint.tolerance
    if wanted.mass is None and wanted.centroid is None and wanted.shape is None:
        return [[] for _ in features]
    grid = coarser(r.domains.grid, r.domains.count)
    m = measure_moments(_parse(model, features, r, grid).double().cpu(), r.domains)
    columns: list[tuple[str, Tensor, float]] = []
    if wanted.mass is not None:
        off = 100 * (m.mass - wanted.mass).abs() / wanted.mass.clamp_min(r.constraint.mass_threshold)
        columns.append(("volume", off, allowed.mass_percent))
    if wanted.centroid is not None:
        off = (m.centroid - wanted.centroid).norm(dim=-1) * frame.edge_mm
        columns.append(("centroid", off, allowed.centroid_mm))
    if wanted.shape is not None:
        off = (m.normalised_covariance - wanted.shape).abs().amax(dim=(-2, -1))
        columns.append(("shape", off, allowed.shape))
    valid = r.domains.valid
    return [
        [Error(name, what, float(off[b][valid].max()), most) for what, off, most in columns if valid.any()]
        for b in range(len(features))
    ]


def _wrong(volumes: Float[Tensor, "k a e g"], r: Resolved) -> float:
    """Features too many or too few at probability 1/2, over the valid domains."""
    assert r.wanted.betti is not None
    wrong = 0
    for k in r.domains.valid.nonzero()[:, 0].tolist():
        found = betti_numbers((volumes[k] > 0.5).cpu().numpy())
        wrong += sum(
            abs(b - w) for b, w in zip(found, betti_of(r.wanted.betti), strict=True) if w is not None
        )
    return float(wrong)


@torch.no_grad()
def diagrams(
    model: Model, resolved: Sequence[Resolved], z: Float[Tensor, "b c h w d"]
) -> list[list[Features]]:
    """Persistence diagrams of every topological substructure, a list a sample."""
    features = model.autoencoder.field.prepare(model.scaler.restore(z))
    out: list[list[Features]] = [[] for _ in z]
    for r in resolved:
        if r.wanted.betti is None:
            continue
        wanted = betti_of(r.wanted.betti)
        for mine, volumes in zip(out, _parse(model, features, r, r.domains.grid), strict=True):
            for k in r.domains.valid.nonzero()[:, 0].tolist():
                diagram = persistence(volumes[k].cpu().numpy(), clamp=0.01, min_persistence=0.02, top=100)
                assert isinstance(diagram, Diagram)
                mine.append(Features(r.constraint.name, k, wanted, diagram))
    return out


def _parse(model: Model, features: Tensor, r: Resolved, grid: Grid) -> Float[Tensor, "b k a e g"]:
    """The structure's probability on the domains' boxes, decoded by the field in cache-sized chunks."""
    domains: Domains = replace(r.domains.to(features), grid=grid)
    size = max(1, CHUNK_POINTS // len(features))

    def field(points: Tensor) -> Tensor:
        return torch.cat([model.autoencoder.field.at(features, p) for p in points.split(size, dim=1)], dim=1)

    return l_parse(field, r.selection, domains, len(features), "sum")


def coarser(grid: Grid, domains: int, most: int = POINTS) -> Grid:
    """The grid with every sampled axis thinned alike, so that all domains together have about `most`."""
    axes = sum(n > 1 for n in grid)
    share = (most / (domains * math.prod(grid))) ** (1 / max(axes, 1))
    a, e, g = (n if n == 1 or share >= 1 else max(2, round(n * share)) for n in grid)
    return a, e, g
