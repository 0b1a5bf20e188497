"""The benchmark runs, and writes the same numbers as a table and as JSON. It asserts no speed."""

import json

import numpy as np
import pytest

from anatomica import _kernel
from anatomica.evaluate.bench.homology import INPUTS, make_input, run


def test_writes_table_and_json(tmp_path):
    said = []
    result = run(tmp_path / "out", sizes=(12,), rounds=1, tell=said.append)
    assert json.loads((tmp_path / "out/homology.json").read_text()) == result
    assert [row["input"] for row in result["rows"]] == list(INPUTS)
    assert all(row["times_the_floor"] > 0 and row["ms"]["gudhi"] > 0 for row in result["rows"])
    table = (tmp_path / "out/homology.md").read_text()
    assert all(f"| {kind} | 12^3 |" in table for kind in INPUTS)
    assert f"Made by commit {result['provenance']['commit']}" in table
    assert said[-1].startswith("extra memory at 12^3: ")


@pytest.mark.parametrize("kind", INPUTS)
def test_inputs_are_probabilities(kind):
    volume = make_input(kind, 16)
    assert volume.min() >= 0
    assert volume.max() <= 1
    assert (set(np.unique(volume)) >= {0, 1}) == (kind == "saturated")


def test_the_floor_is_the_26_neighbour_stencil():
    """Each mask has as many bits as the voxel has neighbours that come before it."""
    volume = np.random.default_rng(0).random((4, 5, 6), dtype=np.float32)
    masks = _kernel.neighbour_masks(volume)
    counts = [bin(mask).count("1") for mask in masks.tolist()]
    padded = np.pad(volume, 1, constant_values=-1)
    shifts = [(x, y, z) for x in range(3) for y in range(3) for z in range(3)]
    higher = np.sum([padded[x : x + 4, y : y + 5, z : z + 6] > volume for x, y, z in shifts], axis=0)
    assert counts == higher.ravel().tolist()
