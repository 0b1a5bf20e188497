"""Specs: what a user asks of an anatomy, as YAML. A constraint is a structure in a domain with targets."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Annotated, Any, Literal

from pydantic import BeforeValidator, Field, field_validator, model_validator

from anatomica.anatomy.bounds import MOST_MM
from anatomica.anatomy.catalogue import ANATOMIES, PAPER_GRID, Anatomy
from anatomica.anatomy.labels import LabelTable
from anatomica.anatomy.record import Slug
from anatomica.errors import AnatomicaError
from anatomica.spec.asks import Ask, Place, parse_ask, texts_of
from anatomica.spec.quantities import BY_KEY, MATCHED, Target, Tolerance
from anatomica.spec.strict import (
    LEAST,
    MOST_CONSTRAINTS,
    MOST_DOMAINS,
    MOST_POINTS,
    Coordinate,
    Domains,
    Extent,
    Grid,
    Real,
    Share,
    Strict,
    Vector,
    Whole,
    Words,
)

Structure = Annotated[list[Words], Field(min_length=1, max_length=255)]
TISSUE_FIELDS = ("around", "along", "first", "second")
"""Fields of domains that name tissues."""


class _Sampled(Strict):
    grid: Grid = Field(description="points sampled along the box's three axes")


class _Sized(_Sampled):
    extent: Extent | None = Field(
        default=None,
        description="box size in voxels of the paper's 128^3 frame; as large as the grid if left out",
    )
    reference: Vector | None = Field(
        default=None, description="reference direction that fixes the box's roll"
    )

    @field_validator("reference")
    @classmethod
    def _direction(cls, reference: Vector | None) -> Vector | None:
        if reference is not None and max(map(abs, reference)) < LEAST:
            raise ValueError("a direction has a length; this one has none")
        return reference

    @property
    def size(self) -> Extent:
        return self.extent if self.extent is not None else self.grid


class GlobalDomain(_Sampled):
    """The whole cube."""

    family: Literal["global"] = "global"


class CartesianDomain(_Sampled):
    """The bounding box of some tissues (the constraint's own structure if `around` is left out).

    Its limits are voxel faces, so that the half voxel by which interpolation softens a border is cut off; a
    margin of half a voxel takes it in, and the volume then is that of counting voxels.
    """

    family: Literal["cartesian"] = "cartesian"
    around: Structure | None = None
    margin_mm: Coordinate = 0.0


class BoxDomain(_Sampled):
    """A box given outright, in RAS mm; rotation as degrees about the x, then y, then z axis."""

    family: Literal["box"] = "box"
    centre_mm: Vector
    size_mm: Extent
    rotation_deg: Vector = (0.0, 0.0, 0.0)


class InterfaceDomain(_Sized):
    """A thin box where `first` meets `second`, centred on one side's part of the interface."""

    family: Literal["interface"] = "interface"
    first: Structure
    second: Structure
    side: Literal["first", "second"] = "first"
    dilation: Annotated[Whole, Field(ge=1, le=PAPER_GRID)] = Field(
        default=5, description="kernel k_dil in paper voxels, made odd"
    )


class CurvilinearDomain(_Sized):
    """Cross-sections along the centreline of some tissues."""

    family: Literal["curvilinear"] = "curvilinear"
    along: Structure | None = None
    planes: Domains = 5


class SphericalDomain(_Sized):
    """Boxes on the wall along rays from the centroid."""

    family: Literal["spherical"] = "spherical"
    around: Structure | None = None
    rays: Domains = 4


class CylindricalDomain(_Sized):
    """Boxes on the wall along horizontal rays at several heights."""

    family: Literal["cylindrical"] = "cylindrical"
    around: Structure | None = None
    levels: Domains = 4
    angles: Domains = 4
    axis: Literal["centroid", "cube"] = "centroid"

    @model_validator(mode="after")
    def _bounded(self) -> CylindricalDomain:
        if self.levels * self.angles > MOST_DOMAINS:
            raise ValueError(f"levels times angles is more than {MOST_DOMAINS} domains")
        return self


DomainSpec = Annotated[
    GlobalDomain
    | CartesianDomain
    | BoxDomain
    | InterfaceDomain
    | CurvilinearDomain
    | SphericalDomain
    | CylindricalDomain,
    Field(discriminator="family"),
]


def domain_count(domain: DomainSpec) -> int:
    """How many domains of one grid a spec's domain stands for."""
    if isinstance(domain, CurvilinearDomain):
        return domain.planes
    if isinstance(domain, SphericalDomain):
        return domain.rays
    return domain.levels * domain.angles if isinstance(domain, CylindricalDomain) else 1


Weight = Annotated[Real, Field(ge=0, le=1e15)]


class Weights(Strict):
    """The paper's loss weights; only `solver: gradient` reads them."""

    geometric: Weight = 1.0
    mass: Weight = 1e7
    centroid: Weight = 1e5
    covariance: Weight = 1e4
    topological: Weight = 1.0


class Constraint(Strict):
    """One structure, one family of domains, and what its measurements should be."""

    name: Words
    structure: Structure
    domain: DomainSpec
    match: Annotated[list[str], Field(max_length=len(BY_KEY))] = Field(
        default=list(MATCHED),
        description="quantities taken from a reference label map; the paper's update does not see spread",
    )
    target: Target = Target()
    tolerance: Tolerance = Tolerance()
    weights: Weights = Weights()
    mass_threshold: Share = Field(
        default=1e-6, description="below this mass, centroid and covariance are not guided"
    )
    temperature: Annotated[Real, Field(ge=0.001, le=1000)] = Field(
        default=1.0, description="softmax value for topology"
    )
    outside: Literal["empty", "free"] | None = Field(
        default=None,
        description="what may be outside the domain; empty if it is the structure's own box, else free",
    )
    calibre_mm: Annotated[Real, Field(ge=0, le=MOST_MM)] | None = Field(
        default=None,
        description="narrowest bridge and gap that count for topology; one output voxel if left out",
    )

    @property
    def outside_is(self) -> Literal["empty", "free"]:
        """`outside`, or its default: a box taken around a structure asks for all of it, others for a part."""
        if self.outside is not None:
            return self.outside
        own = isinstance(self.domain, CartesianDomain) and self.domain.around in (None, self.structure)
        return "empty" if own else "free"

    @field_validator("match")
    @classmethod
    def _known(cls, match: list[str]) -> list[str]:
        for key in match:
            if key not in BY_KEY:
                raise ValueError(f"unknown quantity {key!r}; allowed: {', '.join(BY_KEY)}")
        return match


def _texts(given: Any) -> tuple[str, ...]:
    """A spec's `ask` as lines of text, from a mapping or a list."""
    if not isinstance(given, str | Mapping | list | tuple):
        raise ValueError("ask is a mapping of quantities to values, or a list of lines")
    return texts_of(given)


class Spec(Strict):
    """A named set of constraints and asks on one anatomy, a shipped one or a user's.

    Tissues may be given by any of their names and become short names: at once if the anatomy is a shipped
    one, else by `of`, when the spec meets a model or a label map.
    """

    name: Words
    anatomy: Slug = Field(description="name of a shipped anatomy or of your own")
    description: Annotated[str, Field(max_length=10_000)] = ""
    constraints: Annotated[list[Constraint], Field(max_length=MOST_CONSTRAINTS)] = Field(
        default=[], description="structures in domains with targets"
    )
    ask: Annotated[tuple[str, ...], BeforeValidator(_texts)] = Field(
        default=(),
        max_length=MOST_CONSTRAINTS,
        description="named quantities: {lv.volume_ml: 140} or [lv.volume_ml = 140, ...]",
    )
    place: Place | None = Field(
        default=None,
        description="where the levels of `ask` are placed; on a reference where there is one if left out",
    )

    @model_validator(mode="after")
    def _bounded(self) -> Spec:
        points = sum(math.prod(c.domain.grid) * domain_count(c.domain) for c in self.constraints)
        if points > MOST_POINTS:
            raise ValueError(
                f"the domains have {points:.2g} points together, at most {MOST_POINTS:.2g} are sampled; "
                "take coarser grids or fewer domains"
            )
        return self

    @model_validator(mode="after")
    def _short_names(self) -> Spec:
        if not self.constraints and not self.ask:
            raise ValueError("a spec asks for something: give constraints, or ask")
        if self.anatomy in ANATOMIES:
            # Validators of a frozen model may not return another one.
            short = _with_short_names(self.constraints, ANATOMIES[self.anatomy].table)
            object.__setattr__(self, "constraints", short)
            self.asks(ANATOMIES[self.anatomy])
        return self

    def asks(self, about: Anatomy) -> tuple[Ask, ...]:
        """What is asked of named quantities; an error quotes the ask that is not understood."""
        return tuple(parse_ask(text, about) for text in self.ask)

    def of(self, about: Anatomy) -> Spec:
        """The same spec with short names of tissues; an error if it is about another anatomy."""
        if self.anatomy != about.name:
            raise AnatomicaError(
                f"spec {self.name!r} is about {self.anatomy} anatomy, not about {about.name} anatomy"
            )
        try:
            return self.model_copy(update={"constraints": _with_short_names(self.constraints, about.table)})
        except AnatomicaError as error:
            raise AnatomicaError(f"spec {self.name!r}: {error}") from None


def _with_short_names(constraints: list[Constraint], table: LabelTable) -> list[Constraint]:
    """Every tissue by its short name, and once: two names of one tissue would count it twice in a union."""

    def short(names: list[str]) -> list[str]:
        if any(table[name].id == 0 for name in names):
            raise AnatomicaError(f"the background is not a tissue; allowed: {', '.join(table.tissues)}")
        return list(dict.fromkeys(table[name].name for name in names))

    def renamed(c: Constraint) -> Constraint:
        given = {key: getattr(c.domain, key, None) for key in TISSUE_FIELDS}
        update = {key: short(names) for key, names in given.items() if names is not None}
        domain = c.domain.model_copy(update=update)
        return c.model_copy(update={"structure": short(c.structure), "domain": domain})

    return [renamed(c) for c in constraints]
