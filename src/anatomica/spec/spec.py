"""Specs: what a user asks of an anatomy, as YAML. A constraint is a structure in a domain with targets."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field, field_validator, model_validator

from anatomica.anatomy.catalogue import ANATOMIES, Anatomy
from anatomica.anatomy.labels import LabelTable
from anatomica.anatomy.record import Slug
from anatomica.errors import AnatomicaError
from anatomica.spec.quantities import BY_KEY, MATCHED, Target, Tolerance
from anatomica.spec.strict import Extent, Grid, Strict, Vector

Structure = Annotated[list[str], Field(min_length=1)]
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
    margin_mm: float = 0.0


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
    dilation: Annotated[int, Field(ge=1)] = Field(
        default=5, description="kernel k_dil in paper voxels, made odd"
    )


class CurvilinearDomain(_Sized):
    """Cross-sections along the centreline of some tissues."""

    family: Literal["curvilinear"] = "curvilinear"
    along: Structure | None = None
    planes: Annotated[int, Field(ge=1)] = 5


class SphericalDomain(_Sized):
    """Boxes on the wall along rays from the centroid."""

    family: Literal["spherical"] = "spherical"
    around: Structure | None = None
    rays: Annotated[int, Field(ge=1)] = 4


class CylindricalDomain(_Sized):
    """Boxes on the wall along horizontal rays at several heights."""

    family: Literal["cylindrical"] = "cylindrical"
    around: Structure | None = None
    levels: Annotated[int, Field(ge=1)] = 4
    angles: Annotated[int, Field(ge=1)] = 4
    axis: Literal["centroid", "cube"] = "centroid"


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


class Weights(Strict):
    """The paper's loss weights; only `solver: gradient` reads them."""

    geometric: float = 1.0
    mass: float = 1e7
    centroid: float = 1e5
    covariance: float = 1e4
    topological: float = 1.0


class Constraint(Strict):
    """One structure, one family of domains, and what its measurements should be."""

    name: str
    structure: Structure
    domain: DomainSpec
    match: list[str] = Field(
        default=list(MATCHED),
        description="quantities taken from a reference label map; the paper's update does not see spread",
    )
    target: Target = Target()
    tolerance: Tolerance = Tolerance()
    weights: Weights = Weights()
    mass_threshold: Annotated[float, Field(ge=0)] = Field(
        default=1e-6, description="below this mass, centroid and covariance are not guided"
    )
    temperature: Annotated[float, Field(gt=0)] = Field(default=1.0, description="softmax value for topology")
    calibre_mm: Annotated[float, Field(ge=0)] | None = Field(
        default=None,
        description="narrowest bridge and gap that count for topology; one output voxel if left out",
    )

    @field_validator("match")
    @classmethod
    def _known(cls, match: list[str]) -> list[str]:
        for key in match:
            if key not in BY_KEY:
                raise ValueError(f"unknown quantity {key!r}; allowed: {', '.join(BY_KEY)}")
        return match


class Spec(Strict):
    """A named set of constraints on one anatomy, a shipped one or a user's.

    Tissues may be given by any of their names and become short names: at once if the anatomy is a shipped
    one, else by `of`, when the spec meets a model or a label map.
    """

    name: str
    anatomy: Slug = Field(description="name of a shipped anatomy or of your own")
    description: str = ""
    constraints: Annotated[list[Constraint], Field(min_length=1)]

    @model_validator(mode="after")
    def _short_names(self) -> Spec:
        if self.anatomy in ANATOMIES:
            # Validators of a frozen model may not return another one.
            short = _with_short_names(self.constraints, ANATOMIES[self.anatomy].table)
            object.__setattr__(self, "constraints", short)
        return self

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
        return list(dict.fromkeys(table[name].name for name in names))

    def renamed(c: Constraint) -> Constraint:
        given = {key: getattr(c.domain, key, None) for key in TISSUE_FIELDS}
        update = {key: short(names) for key, names in given.items() if names is not None}
        domain = c.domain.model_copy(update=update)
        return c.model_copy(update={"structure": short(c.structure), "domain": domain})

    return [renamed(c) for c in constraints]
