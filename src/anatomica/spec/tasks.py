"""The paper's tasks by name, each a Spec builder with the numbers of its task tables.

Tolerances are those that a true patient can meet on two grids: not below the 95th percentile of what
`anatomica bench floor` measures. So are the calibres of counts: a border that moves by half an output voxel
cuts the branches of 10 of 16 true aortas, joins or splits the atria of 13 of 16 hearts, and opens the facet
joints of all spines.
"""

from __future__ import annotations

from collections.abc import Callable

from anatomica.anatomy.catalogue import ANATOMIES
from anatomica.errors import AnatomicaError
from anatomica.spec.quantities import BettiPrior, Target, Tolerance
from anatomica.spec.spec import (
    CartesianDomain,
    Constraint,
    CurvilinearDomain,
    CylindricalDomain,
    GlobalDomain,
    InterfaceDomain,
    Spec,
    SphericalDomain,
    Weights,
)


def right_ventricle() -> Spec:
    """Size, place and shape of the right ventricle in its bounding box."""
    rv = Constraint(
        name="right ventricle",
        structure=["RV"],
        domain=CartesianDomain(grid=(64, 64, 64)),
        mass_threshold=1e-5,
        weights=Weights(mass=1e7, centroid=1e5, covariance=1e4),
    )
    return Spec(name="right-ventricle", anatomy="cardiac", constraints=[rv])


def mitral_valve() -> Spec:
    """Left ventricle and left atrium on both sides of the mitral annulus."""

    def side(tissue: str, which: str) -> Constraint:
        return Constraint(
            name=f"mitral valve, {tissue} side",
            structure=[tissue],
            domain=InterfaceDomain(grid=(4, 32, 32), first=["LV"], second=["LA"], side=which),  # type: ignore[arg-type]
            mass_threshold=1e-4,
            tolerance=Tolerance(mass_percent=6, centroid_mm=1.05, shape=0.025, spread_percent=3.5),
            weights=Weights(mass=1e9, centroid=1e6, covariance=1e4),
        )

    return Spec(
        name="mitral-valve", anatomy="cardiac", constraints=[side("LV", "first"), side("LA", "second")]
    )


def aortic_trunk() -> Spec:
    """Five cross-sections along the aorta."""
    trunk = Constraint(
        name="aortic trunk",
        structure=["Ao"],
        domain=CurvilinearDomain(grid=(1, 32, 32), planes=5),
        mass_threshold=1e-6,
        tolerance=Tolerance(mass_percent=9, centroid_mm=1.4, shape=0.065, spread_percent=5.5),
        weights=Weights(mass=1e9, centroid=1e5, covariance=1e3),
    )
    return Spec(name="aortic-trunk", anatomy="cardiac", constraints=[trunk])


def myocardium_wall() -> Spec:
    """Wall of the left ventricle along four rays from the myocardium's centroid."""
    wall = Constraint(
        name="myocardium wall",
        structure=["Myo"],
        domain=SphericalDomain(grid=(4, 4, 16), rays=4),
        mass_threshold=1e-6,
        tolerance=Tolerance(mass_percent=15, shape=0.08, spread_percent=10),
        weights=Weights(mass=1e9, centroid=1e5, covariance=1e4),
    )
    return Spec(name="myocardium-wall", anatomy="cardiac", constraints=[wall])


def _topological(
    name: str,
    anatomy: str,
    structure: list[str],
    betti: tuple[int, int, int],
    weight: float,
    calibre_mm: float,
) -> Spec:
    constraint = Constraint(
        name=name.replace("-", " "),
        structure=structure,
        domain=GlobalDomain(grid=(64, 64, 64)),
        match=[],
        target=Target(betti=BettiPrior(b0=betti[0], b1=betti[1], b2=betti[2])),
        weights=Weights(geometric=0.0, topological=weight),
        temperature=4.0,
        calibre_mm=calibre_mm,
    )
    return Spec(name=name, anatomy=anatomy, constraints=[constraint])


def atrial_separation() -> Spec:
    """Left and right atrium as two separate components."""
    return _topological("atrial-separation", "cardiac", ["LA", "RA"], (2, 0, 0), 5.0, 0.8)


def branch_connectivity() -> Spec:
    """Aorta and all its branches as one component."""
    tissues = list(ANATOMIES["aortic"].table.tissues)
    return _topological("branch-connectivity", "aortic", tissues, (1, 0, 0), 1.0, 2.0)


def vertebrae_connectivity() -> Spec:
    """T6 to T10 as one component with nine loops: five canals and four rings between neighbours' facets."""
    tissues = ["T6", "T7", "T8", "T9", "T10"]
    return _topological("vertebrae-connectivity", "spinal", tissues, (1, 9, 0), 5.0, 0.4)


def calcium_count() -> Spec:
    """Two calcium deposits in the coronary wall."""
    return _topological("calcium-count", "coronary", ["Ca"], (2, 0, 0), 50.0, 0.1)


def _multiscale_spine(size: str) -> Spec:
    """Size, place and shape of three (small) or six (large) thoracic vertebrae in their bounding box."""
    # The paper lists T5-T10 / T6-T8 as "smaller / larger"; the fewer vertebrae are the smaller domain.
    tissues = {"small": ["T6", "T7", "T8"], "large": ["T5", "T6", "T7", "T8", "T9", "T10"]}[size]
    spine = Constraint(
        name=f"{tissues[0]} to {tissues[-1]}",
        structure=tissues,
        domain=CartesianDomain(grid=(64, 64, 64)),
        mass_threshold=1e-4,
        tolerance=Tolerance(mass_percent={"small": 6.0, "large": 2.0}[size]),
        weights=Weights(mass=1e7, centroid=1e5, covariance=1e4),
    )
    return Spec(name=f"multiscale-spine-{size}", anatomy="spinal", constraints=[spine])


def _multiscale_aorta(size: str) -> Spec:
    """Five thin (small) or thick (large) cross-sections along the aorta."""
    # The paper's table has two grids; "we change the grid resolution along specified axes" is the second.
    grid = {"small": (1, 16, 16), "large": (16, 16, 16)}[size]
    aorta = Constraint(
        name="aorta",
        structure=["Ao"],
        domain=CurvilinearDomain(grid=grid, planes=5),
        mass_threshold=1e-6,
        tolerance={
            "small": Tolerance(mass_percent=9, centroid_mm=1.15, shape=0.05, spread_percent=5.5),
            "large": Tolerance(mass_percent=4.5, shape=0.025),
        }[size],
        weights=Weights(mass=1e9, centroid=1e5, covariance=1e3),
    )
    return Spec(name=f"multiscale-aorta-{size}", anatomy="aortic", constraints=[aorta])


def _multiscale_myocardium(size: str) -> Spec:
    """Wall along sixteen rays, narrow (small) or wide (large)."""
    grid = {"small": (4, 4, 16), "large": (8, 8, 16)}[size]
    wall = Constraint(
        name="myocardium wall",
        structure=["Myo"],
        domain=SphericalDomain(grid=grid, rays=16),
        mass_threshold=1e-6,
        tolerance={
            "small": Tolerance(mass_percent=16, centroid_mm=1.2, shape=0.1, spread_percent=11),
            "large": Tolerance(mass_percent=9, shape=0.06, spread_percent=4.3),
        }[size],
        weights=Weights(mass=1e9, centroid=1e5, covariance=1e4),
    )
    return Spec(name=f"multiscale-myocardium-{size}", anatomy="cardiac", constraints=[wall])


def _multiscale_vessel(size: str) -> Spec:
    """Coronary wall along sixteen rays at four heights, narrow (small) or wide (large)."""
    grid = {"small": (4, 4, 32), "large": (16, 16, 32)}[size]
    wall = Constraint(
        name="vessel wall",
        structure=["Ca", "Ve"],
        domain=CylindricalDomain(grid=grid, levels=4, angles=4),
        mass_threshold=1e-6,
        # 1 mm is 8 % of this cube; half a paper voxel is the share that 1 mm is of a heart.
        tolerance={
            "small": Tolerance(mass_percent=18.5, centroid_mm=0.056, shape=0.107, spread_percent=11.2),
            "large": Tolerance(mass_percent=5, centroid_mm=0.05, shape=0.025),
        }[size],
        weights=Weights(mass=1e9, centroid=1e5, covariance=1e4),
    )
    return Spec(name=f"multiscale-vessel-{size}", anatomy="coronary", constraints=[wall])


_BUILDERS: tuple[Callable[[], Spec], ...] = (
    right_ventricle,
    mitral_valve,
    aortic_trunk,
    myocardium_wall,
    atrial_separation,
    branch_connectivity,
    vertebrae_connectivity,
    calcium_count,
)
_MULTISCALE = (_multiscale_spine, _multiscale_aorta, _multiscale_myocardium, _multiscale_vessel)


def _described(build: Callable[..., Spec], *arguments: str) -> Spec:
    return build(*arguments).model_copy(update={"description": build.__doc__ or ""})


GEOMETRIC = ("right-ventricle", "mitral-valve", "aortic-trunk", "myocardium-wall")
TOPOLOGICAL = ("atrial-separation", "branch-connectivity", "vertebrae-connectivity", "calcium-count")

TASKS: dict[str, Spec] = {
    spec.name: spec
    for spec in (
        *(_described(build) for build in _BUILDERS),
        *(_described(build, size) for build in _MULTISCALE for size in ("small", "large")),
    )
}
"""All tasks of the paper: four geometric, four topological, and the four multiscale ones in both sizes."""


def task(name: str) -> Spec:
    """The task called `name`, or an error that lists them all."""
    try:
        return TASKS[name]
    except KeyError:
        raise AnatomicaError(f"unknown task {name!r}; allowed: {', '.join(TASKS)}") from None
