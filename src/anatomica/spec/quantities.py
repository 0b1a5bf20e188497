"""The table of quantities: what can be asked of a structure in a control domain, one row per quantity.

A row says everything about its quantity: how a target is written, how it is measured, which residuals it
has, when it is met and how it is printed. Placing, certificates, residuals, traces, feasibility, charts,
recipes and the paper's potentials loop over the rows; a new quantity is a new row here, with a field of
`Target` and one of `Tolerance`. The hard and the soft measurement are one function: of the moments of a label
map's indicator, or of those of the field's probabilities, through which it has a derivative.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Annotated, Any, Protocol, TypeVar, runtime_checkable

import numpy as np
import torch
from pydantic import AfterValidator, Field, model_validator
from torch import Tensor

from anatomica.anatomy.frame import Frame
from anatomica.spec.strict import (
    LEAST,
    MOST_DOMAINS,
    Extent,
    Length,
    Place,
    Real,
    Share,
    Strict,
    Symmetric,
    Vector,
    Whole,
)

TINY = 1e-9
"""The smallest mass and variance divided by."""
BETTI = ("components", "loops", "voids")
"""Names of the Betti numbers, by dimension."""


@runtime_checkable
class MomentsLike(Protocol):
    """What a row reads, in cube units: mass (*b k), centroid (*b k 3), scale-normalised covariance (*b k 3 3)
    and size (*b k), which is the covariance's trace."""

    @property
    def mass(self) -> Tensor: ...
    @property
    def centroid(self) -> Tensor: ...
    @property
    def normalised_covariance(self) -> Tensor: ...
    @property
    def size(self) -> Tensor: ...


@runtime_checkable
class BoxesLike(Protocol):
    """The measured domains: edge lengths s (*b k 3) in cube units, and how many points each axis has."""

    @property
    def s(self) -> Tensor: ...
    @property
    def grid(self) -> tuple[int, int, int]: ...


Ask = Callable[[Tensor, Frame], Tensor]
"""Values as a spec has them, one row per domain (k, width), and the frame -> cube units (k, *shape)."""


@dataclass(frozen=True, kw_only=True)
class Quantity:
    """One row. `value` is the measured or wanted quantity in cube units, with `shape` for each domain."""

    key: str
    """Its name in `Constraint.match`, in recipes and in `Wanted`."""
    title: str
    """Its name for people."""
    unit: str
    """Of `for_people`."""
    error_unit: str
    """Of `error` and of the tolerance."""
    tolerance: str
    """The field of `Tolerance`."""
    shape: tuple[int, ...]
    asked: dict[str, tuple[int, Ask]]
    """Fields of `Target` that set it: how many numbers per domain, and how they become cube units."""
    measured: Callable[[MomentsLike, BoxesLike], Tensor]
    off: Callable[[MomentsLike, BoxesLike, Tensor], Tensor]
    """(moments, domains, wanted) -> signed differences (*b, k, rows): residuals, not yet in tolerances."""
    scale: Callable[[float, float], float]
    """(tolerance, cube edge in mm) -> what one tolerance is in units of `off`."""
    error: Callable[[Tensor, Tensor, float, float], Tensor]
    """(measured, wanted, edge in mm, mass threshold) -> error of each domain (*b, k), in `error_unit`."""
    for_people: Callable[[Tensor, Frame], float | list[float]]
    """One domain's value with `unit`."""
    relative: bool = False
    """Whether the tolerance is a share of the wanted value (at least of the constraint's mass threshold)."""
    any_mass: bool = False
    """Whether it has a meaning where next to nothing is there; centroid, shape and spread have none."""
    sharp: bool = False
    """Whether it is asked of sharp predictions only (`guidance.gauss_newton.first_moments` says why)."""
    matched: bool = True
    """Whether `Constraint.match` takes it from a reference unless the spec says otherwise."""
    weight: str | None = None
    """The paper's loss weight (`Weights`); the paper's potential does not see a quantity without one."""
    whole: bool = True
    """Whether a model's population has it, of whole tissues; `to_columns` and `from_columns` are for that."""
    to_columns: Callable[[Tensor], Tensor] = lambda x: x
    """Values (rows, *shape) -> plain columns (rows, f) whose covariance makes sense."""
    from_columns: Callable[[Tensor], Tensor] = lambda x: x
    """One row of columns (f,) -> a value."""

    def allowed(self, wanted: Tensor, tolerance: float, edge_mm: float, threshold: float) -> Tensor | float:
        """What one tolerance is, in units of `off`."""
        scale = self.scale(tolerance, edge_mm)
        return scale * wanted.clamp_min(threshold) if self.relative else scale


def _percent(tolerance: float, edge_mm: float) -> float:
    return tolerance / 100


def _mm(tolerance: float, edge_mm: float) -> float:
    return tolerance / edge_mm


_UPPER = ([0, 0, 0, 1, 1, 2], [0, 1, 2, 1, 2, 2])
"""The upper triangle row by row."""
_LISTED = ([0, 1, 2, 0, 0, 1], [0, 1, 2, 1, 2, 2])
"""xx, yy, zz, xy, xz, yz: a shape as a spec lists it."""
_FREE = ([0, 1, 0, 0, 1], [0, 1, 1, 2, 2])
"""Five numbers of a shape; its trace is 1."""


def symmetric(listed: Tensor) -> Tensor:
    """xx, yy, zz, xy, xz, yz (*k, 6) -> matrices (*k, 3, 3)."""
    xx, yy, zz, xy, xz, yz = listed.unbind(-1)
    return torch.stack([xx, xy, xz, xy, yy, yz, xz, yz, zz], dim=-1).unflatten(-1, (3, 3))


def _shape_from_columns(x: Tensor) -> Tensor:
    xx, yy, xy, xz, yz = x.unbind(-1)
    return symmetric(torch.stack([xx, yy, 1 - xx - yy, xy, xz, yz], dim=-1))


def _log_column(x: Tensor) -> Tensor:
    return x.clamp_min(TINY).log()[:, None]


def _section_area(moments: MomentsLike, boxes: BoxesLike) -> Tensor:
    """Area of planar sections (units of L^2): mass over the edge along the axis that is sampled once."""
    normal = boxes.grid.index(min(boxes.grid))
    return moments.mass / boxes.s.to(moments.mass)[..., normal]


def equivalent_diameter(area: Tensor) -> Tensor:
    """Diameter of the circle with this area."""
    return (4 / math.pi * area.clamp_min(TINY)).sqrt()


QUANTITIES: tuple[Quantity, ...] = (
    Quantity(
        key="mass",
        title="volume",
        unit="mL",
        error_unit="%",
        tolerance="mass_percent",
        shape=(),
        asked={
            "volume_ml": (1, lambda x, frame: x[:, 0] * frame.to_mass(1.0)),
            "mass": (1, lambda x, frame: x[:, 0]),
        },
        measured=lambda m, boxes: m.mass,
        off=lambda m, boxes, want: (m.mass - want)[..., None],
        scale=_percent,
        error=lambda got, want, edge_mm, least: 100 * (got - want).abs() / want.clamp_min(max(least, 1e-12)),
        for_people=lambda x, frame: frame.to_ml(float(x)),
        relative=True,
        any_mass=True,
        weight="mass",
        to_columns=_log_column,
        from_columns=lambda x: x[0].exp(),
    ),
    Quantity(
        key="centroid",
        title="centroid",
        unit="mm",
        error_unit="mm",
        tolerance="centroid_mm",
        shape=(3,),
        asked={
            "centroid_mm": (3, lambda x, frame: torch.from_numpy(frame.to_unit(x.numpy()))),
            "centroid": (3, lambda x, frame: x),
        },
        measured=lambda m, boxes: m.centroid,
        off=lambda m, boxes, want: m.centroid - want,
        scale=_mm,
        error=lambda got, want, edge_mm, least: (got - want).norm(dim=-1) * edge_mm,
        for_people=lambda x, frame: frame.to_mm(x.numpy()).tolist(),
        weight="centroid",
    ),
    Quantity(
        key="shape",
        title="shape",
        unit="",
        error_unit="",
        tolerance="shape",
        shape=(3, 3),
        asked={"shape": (6, lambda x, frame: symmetric(x))},
        measured=lambda m, boxes: m.normalised_covariance,
        off=lambda m, boxes, want: (m.normalised_covariance - want)[..., _UPPER[0], _UPPER[1]],
        scale=lambda tolerance, edge_mm: tolerance,
        error=lambda got, want, edge_mm, least: (got - want).abs().amax(dim=(-2, -1)),
        for_people=lambda x, frame: x[_LISTED[0], _LISTED[1]].tolist(),
        sharp=True,
        weight="covariance",
        to_columns=lambda x: x[:, _FREE[0], _FREE[1]],
        from_columns=_shape_from_columns,
    ),
    Quantity(
        key="spread",
        title="spread",
        unit="mm",
        error_unit="%",
        tolerance="spread_percent",
        shape=(),
        asked={"spread_mm": (1, lambda x, frame: x[:, 0] / frame.edge_mm)},
        measured=lambda m, boxes: m.size.sqrt(),
        # Half the relative error of the square is that of the spread, and has a slope at zero as well.
        off=lambda m, boxes, want: ((m.size / want.square().clamp_min(TINY) - 1) / 2)[..., None],
        scale=_percent,
        error=lambda got, want, edge_mm, least: 100 * (got / want.clamp_min(1e-12) - 1).abs(),
        for_people=lambda x, frame: float(x) * frame.edge_mm,
        sharp=True,
        to_columns=_log_column,
        from_columns=lambda x: x[0].exp(),
    ),
    Quantity(
        key="diameter",
        title="equivalent diameter",
        unit="mm",
        error_unit="mm",
        tolerance="diameter_mm",
        shape=(),
        asked={"diameter_mm": (1, lambda x, frame: x[:, 0] / frame.edge_mm)},
        measured=lambda m, boxes: equivalent_diameter(_section_area(m, boxes)),
        off=lambda m, boxes, want: (equivalent_diameter(_section_area(m, boxes)) - want)[..., None],
        scale=_mm,
        error=lambda got, want, edge_mm, least: (got - want).abs() * edge_mm,
        for_people=lambda x, frame: float(x) * frame.edge_mm,
        any_mass=True,
        matched=False,
        whole=False,
    ),
)
"""All quantities of a structure in a domain. The equivalent diameter is that of planar sections."""

BY_KEY = {q.key: q for q in QUANTITIES}
MATCHED = tuple(q.key for q in QUANTITIES if q.matched)

T = TypeVar("T")
Each = T | Annotated[list[T], Field(min_length=1, max_length=MOST_DOMAINS)] | None
"""One value for all domains, or one for each."""
Millilitres = Annotated[Real, Field(ge=0, le=1e6)]
Allowed = Annotated[Real, Field(ge=LEAST, le=1e6)]
Count = Annotated[Whole, Field(ge=0, le=10_000)]


def _covariance(listed: Symmetric) -> Symmetric:
    """xx, yy, zz, xy, xz, yz, if some mass has this scale-normalised covariance; digits may be rounded."""
    xx, yy, zz, xy, xz, yz = listed
    least = float(np.linalg.eigvalsh([[xx, xy, xz], [xy, yy, yz], [xz, yz, zz]])[0])
    if abs(xx + yy + zz - 1) > 0.01:
        raise ValueError(f"not a covariance of trace 1: xx + yy + zz is {xx + yy + zz:.4g}")
    if least < -0.001:
        raise ValueError(f"not a covariance: its smallest eigenvalue is {least:.3g}, below 0")
    return listed


Shape = Annotated[Symmetric, AfterValidator(_covariance)]


class BettiPrior(Strict):
    """Wanted components, loops and voids; what is left out is free."""

    b0: Count | None = None
    b1: Count | None = None
    b2: Count | None = None

    @model_validator(mode="after")
    def _something(self) -> BettiPrior:
        if self.b0 == 0 and (self.b1 or self.b2):
            raise ValueError("without a component (b0: 0) there are no loops and no voids")
        return self

    @property
    def numbers(self) -> tuple[int | None, int | None, int | None]:
        """Components, loops and voids; None is free."""
        return self.b0, self.b1, self.b2


class Target(Strict):
    """Numbers to reach: one value for every domain of the constraint, or a list with one value per domain.

    What is left out is free, unless a reference label map is given: then `Constraint.match` is read from it.
    """

    volume_ml: Each[Millilitres] = None
    mass: Each[Share] = Field(default=None, description="fraction of the cube's volume")
    centroid_mm: Each[Vector] = None
    centroid: Each[Place] = Field(default=None, description="in [0, 1]^3 of the cube")
    shape: Each[Shape] = Field(
        default=None, description="scale-normalised covariance xx, yy, zz, xy, xz, yz (trace 1)"
    )
    spread_mm: Each[Length] = Field(default=None, description="root mean square distance from the centroid")
    diameter_mm: Each[Length] = Field(
        default=None,
        description="equivalent diameter of a planar section: of the circle with its area",
    )
    axes_mm: Extent | None = Field(default=None, description="semi-axes of the wanted ellipsoid; sets shape")
    rotation_deg: Vector | None = Field(
        default=None, description="turn of those axes about x, then y, then z"
    )
    betti: BettiPrior | None = None

    @model_validator(mode="after")
    def _one_of_each(self) -> Target:
        pairs = [tuple(q.asked) for q in QUANTITIES if len(q.asked) == 2]
        for a, b in (*pairs, ("shape", "axes_mm")):
            if getattr(self, a) is not None and getattr(self, b) is not None:
                raise ValueError(f"give {a} or {b}, not both")
        if self.rotation_deg is not None and self.axes_mm is None:
            raise ValueError("rotation_deg turns axes_mm, which is missing")
        pieces = None if self.betti is None else self.betti.b0
        for name in ("volume_ml", "mass"):
            asked = getattr(self, name)
            values = asked if isinstance(asked, list) else [] if asked is None else [asked]
            if pieces == 0 and any(v > 0 for v in values):
                raise ValueError(f"{name} asks for some of the structure, betti (b0: 0) for none")
            if pieces and any(v == 0 for v in values):
                raise ValueError(f"{name} asks for none of the structure, betti (b0: {pieces}) for some")
        return self

    def given(self, quantity: Quantity) -> tuple[str, Any] | None:
        """The field that sets a quantity, and its value; None if it is free."""
        fields = ((name, getattr(self, name)) for name in quantity.asked)
        return next(((name, value) for name, value in fields if value is not None), None)


MASS_PERCENT = 2.0
"""Of a volume, where a spec states nothing else and the grid can tell as much."""


class Tolerance(Strict):
    """When a constraint counts as met."""

    mass_percent: Allowed | None = Field(
        default=None,
        description="left out: 2 %, or what counting voxels can tell of a volume if that is more",
    )
    centroid_mm: Allowed = 1.0
    shape: Allowed = 0.02
    spread_percent: Allowed = 2.0
    diameter_mm: Allowed = 1.0
    outside_percent: Allowed = Field(
        default=1.0, description="of the structure, beyond a domain outside of which nothing may be"
    )

    def of(self, quantity: Quantity) -> float:
        stated = getattr(self, quantity.tolerance)
        return MASS_PERCENT if stated is None else float(stated)
