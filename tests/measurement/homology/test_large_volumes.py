"""Diagrams equal the rivals' on volumes of the size that guidance uses, and their locations are right."""

import numpy as np
import pytest
from rivals import cripser_table, diagram_of, gudhi_table, ours

from anatomica.evaluate.bench.homology import INPUTS, make_input


@pytest.mark.parametrize("kind", INPUTS)
def test_64_against_cripser(kind: str):
    volume = make_input(kind, 64, seed=5)
    diagram = diagram_of(volume)
    assert np.array_equal(volume.ravel()[diagram.birth_voxel], diagram.birth)
    assert np.array_equal(volume.ravel()[diagram.death_voxel], diagram.death)
    np.testing.assert_array_equal(ours(diagram), cripser_table(volume))


@pytest.mark.parametrize("kind", ["smooth", "saturated"])
def test_48_against_gudhi(kind: str):
    volume = make_input(kind, 48, seed=6)
    np.testing.assert_array_equal(ours(diagram_of(volume)), gudhi_table(volume))
    np.testing.assert_array_equal(ours(diagram_of(volume, construction="T")), gudhi_table(volume, "T"))


@pytest.mark.slow
@pytest.mark.parametrize("kind", INPUTS)
@pytest.mark.parametrize("seed", range(4))
def test_64_against_both(kind: str, seed: int):
    volume = make_input(kind, 64, seed=seed)
    for construction in ("V", "T"):
        found = ours(diagram_of(volume, construction=construction))
        np.testing.assert_array_equal(found, gudhi_table(volume, construction))
        np.testing.assert_array_equal(found, cripser_table(volume, construction))


@pytest.mark.slow
@pytest.mark.parametrize("kind", INPUTS)
def test_128_against_cripser(kind: str):
    volume = make_input(kind, 128, seed=1)
    np.testing.assert_array_equal(ours(diagram_of(volume)), cripser_table(volume))
