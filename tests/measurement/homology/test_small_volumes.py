"""Diagrams equal those of two independent implementations on tens of thousands of small volumes."""

import os

import numpy as np
import pytest
from rivals import cripser_table, diagram_of, diagrams_of, gudhi_table, ours
from shapes import KINDS, every_small_shape, values


def small_volumes(part: int, parts: int, rounds: int, seed: int) -> list[np.ndarray]:
    """Every shape from 1x1x1 to 12x12x12, `rounds` volumes of each in kinds that take turns."""
    rng = np.random.default_rng([seed, part])
    shapes = every_small_shape()[part::parts]
    return [
        values(KINDS[(i + turn) % len(KINDS)], shape, rng)
        for turn in range(rounds)
        for i, shape in enumerate(shapes)
    ]


def check(volumes: list[np.ndarray], construction, rivals) -> None:
    for dtype in (np.float32, np.float64):
        same = [volume for volume in volumes if volume.dtype == dtype]
        for volume, diagram in zip(
            same, diagrams_of(same, construction=construction, threads=1), strict=True
        ):
            flat = volume.ravel()
            assert np.array_equal(flat[diagram.birth_voxel], diagram.birth), volume
            assert np.array_equal(flat[diagram.death_voxel], diagram.death), volume
            assert diagram.birth.dtype == dtype
            found = ours(diagram)
            for rival in rivals:
                assert np.array_equal(found, rival(volume, construction)), (rival, volume)


# Under the sanitizers, where everything is many times slower, an eighth of the volumes.
PARTS = range(1 if "ANATOMICA_KERNEL" in os.environ else 8)


@pytest.mark.parametrize("part", PARTS)
def test_v_construction(part: int):
    check(small_volumes(part, 8, 12, seed=1), "V", (gudhi_table, cripser_table))


@pytest.mark.parametrize("part", PARTS)
def test_t_construction(part: int):
    check(small_volumes(part, 8, 2, seed=2), "T", (gudhi_table, cripser_table))


@pytest.mark.parametrize("ndim", [1, 2])
def test_fewer_dimensions(ndim: int):
    rng = np.random.default_rng(ndim)
    for turn in range(400):
        volume = values(KINDS[turn % len(KINDS)], tuple(rng.integers(1, 20, ndim)), rng)
        for construction in ("V", "T"):
            found = ours(diagram_of(volume, construction=construction))
            assert np.array_equal(found, gudhi_table(volume, construction)), volume


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(3, 8))
def test_many_more(seed: int):
    check(small_volumes(0, 1, 12, seed), "V", (cripser_table,))
    check(small_volumes(0, 1, 12, seed), "T", (cripser_table,))
