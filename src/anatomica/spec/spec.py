"""Specs: what a user asks of an anatomy, as YAML. A constraint is a structure in a domain with targets."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import BaseModel, ConfigDict, Field, model_validator

from anatomica.anatomy.catalogue import anatomy

Vector = tuple[float, float, float]
Grid = tuple[Annotated[int, Field(ge=1)], Annotated[int, Field(ge=1)], Annotated[int, Field(ge=1)]]
Extent = tuple[Annotated[float, Field(gt=0)], Annotated[float, Field(gt=0)], Annotated[float, Field(gt=0)]]
Symmetric = tuple[float, float, float, float, float, float]
Structure = Annotated[list[str], Field(min_length=1)]
AnatomyName = Literal["cardiac", "aortic", "spinal", "coronary"]


class _Strict(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)


class _Sampled(_Strict):
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


class BettiPrior(_Strict):
    """Wanted components, loops and voids; what is left out is free."""

    b0: Annotated[int, Field(ge=0)] | None = None
    b1: Annotated[int, Field(ge=0)] | None = None
    b2: Annotated[int, Field(ge=0)] | None = None

    @property
    def numbers(self) -> tuple[int | None, int | None, int | None]:
        """Components, loops and voids; None is free."""
        return self.b0, self.b1, self.b2


class Target(_Strict):
    """Numbers to reach, one value for every domain of the constraint or a list with one a domain.

    What is left out is free, unless a reference label map is given: then `Constraint.match` is read from it.
    """

    volume_ml: float | list[float] | None = None
    mass: float | list[float] | None = Field(default=None, description="fraction of the cube's volume")
    centroid_mm: Vector | list[Vector] | None = None
    centroid: Vector | list[Vector] | None = Field(default=None, description="in [0, 1]^3 of the cube")
    shape: Symmetric | list[Symmetric] | None = Field(
        default=None, description="scale-normalised covariance xx, yy, zz, xy, xz, yz (trace 1)"
    )
    spread_mm: float | list[float] | None = Field(
        default=None, description="root mean square distance from the centroid"
    )
    axes_mm: Extent | None = Field(default=None, description="semi-axes of the wanted ellipsoid; sets shape")
    rotation_deg: Vector | None = Field(
        default=None, description="turn of those axes about x, then y, then z"
    )
    betti: BettiPrior | None = None

    @model_validator(mode="after")
    def _one_of_each(self) -> Target:
        pairs = (("volume_ml", "mass"), ("centroid_mm", "centroid"), ("shape", "axes_mm"))
        for a, b in pairs:
            if getattr(self, a) is not None and getattr(self, b) is not None:
                raise ValueError(f"give {a} or {b}, not both")
        if self.rotation_deg is not None and self.axes_mm is None:
            raise ValueError("rotation_deg turns axes_mm, which is missing")
        return self


class Tolerance(_Strict):
    """When a constraint counts as met."""

    mass_percent: Annotated[float, Field(gt=0)] = 2.0
    centroid_mm: Annotated[float, Field(gt=0)] = 1.0
    shape: Annotated[float, Field(gt=0)] = 0.02
    spread_percent: Annotated[float, Field(gt=0)] = 2.0


class Weights(_Strict):
    """The paper's loss weights, read by `solver: gradient` alone."""

    geometric: float = 1.0
    mass: float = 1e7
    centroid: float = 1e5
    covariance: float = 1e4
    topological: float = 1.0


class Constraint(_Strict):
    """One structure, one family of domains, and what its measurements shall be."""

    name: str
    structure: Structure
    domain: DomainSpec
    match: list[Literal["mass", "centroid", "shape", "spread"]] = Field(
        default=["mass", "centroid", "shape", "spread"],
        description="what is taken from a reference label map; the paper's update does not see spread",
    )
    target: Target = Target()
    tolerance: Tolerance = Tolerance()
    weights: Weights = Weights()
    mass_threshold: Annotated[float, Field(ge=0)] = Field(
        default=1e-6, description="below this mass, centroid and covariance are left alone"
    )
    temperature: Annotated[float, Field(gt=0)] = Field(default=1.0, description="softmax value for topology")


class Spec(_Strict):
    """A named set of constraints on one anatomy."""

    name: str
    anatomy: AnatomyName
    description: str = ""
    constraints: Annotated[list[Constraint], Field(min_length=1)]

    @model_validator(mode="after")
    def _tissues_exist(self) -> Spec:
        table = anatomy(self.anatomy).table
        for constraint in self.constraints:
            domain = constraint.domain
            others = [getattr(domain, key, None) for key in ("around", "along", "first", "second")]
            for tissue in [*constraint.structure, *(t for names in others if names for t in names)]:
                table[tissue]
        return self
