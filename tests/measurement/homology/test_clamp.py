"""clamp=delta: the clamped volume's diagram, close to the exact one, with voxels from the original values."""

import gudhi
import numpy as np
import pytest
from rivals import diagram_of, ours
from scipy.ndimage import generate_binary_structure

from oracles import components


def noisy(seed: int, shape=(14, 13, 12), dtype=np.float32) -> np.ndarray:
    rng = np.random.default_rng(seed)
    logits = np.where(rng.random(shape) < 0.5, 4.0, -4.0) + rng.standard_normal(shape)
    return (1 / (1 + np.exp(-logits))).astype(dtype)


def clamped(volume: np.ndarray, delta: float) -> np.ndarray:
    delta = volume.dtype.type(delta)
    return np.where(volume < delta, 0, np.where(volume > 1 - delta, 1, volume)).astype(volume.dtype)


@pytest.mark.parametrize("construction", ["V", "T"])
@pytest.mark.parametrize("seed", range(6))
def test_is_the_diagram_of_the_clamped_volume(seed, construction):
    volume = noisy(seed, dtype=(np.float32, np.float64)[seed % 2])
    found = diagram_of(volume, construction=construction, clamp=0.02)
    flat = clamped(volume, 0.02)
    assert np.array_equal(ours(found), ours(diagram_of(flat, construction=construction)))
    assert np.array_equal(flat.ravel()[found.birth_voxel], found.birth)
    assert np.array_equal(flat.ravel()[found.death_voxel], found.death)


@pytest.mark.parametrize("seed", range(4))
def test_is_within_delta_of_the_exact_diagram(seed):
    volume = noisy(seed, (9, 9, 9))
    exact, found = diagram_of(volume), diagram_of(volume, clamp=0.05)
    for dim in range(3):
        a, b = ([*zip(d.of_dim(dim).death, d.of_dim(dim).birth, strict=True)] for d in (exact, found))
        assert gudhi.bottleneck_distance(a, b) <= 0.05


@pytest.mark.parametrize("construction", ["V", "T"])
@pytest.mark.parametrize("seed", range(6))
def test_voxels_on_a_plateau_are_its_extreme_ones(seed, construction):
    """Plateaus of 1 are foreground, of 0 background; each reported voxel is the extreme of its component."""
    volume = noisy(seed)
    flat = clamped(volume, 0.02)
    found = diagram_of(volume, construction=construction, clamp=0.02)
    faces, corners = generate_binary_structure(3, 1), generate_binary_structure(3, 3)
    foreground, background = (faces, corners) if construction == "V" else (corners, faces)
    for plateau, neighbours, extreme in ((1, foreground, np.argmax), (0, background, np.argmin)):
        numbers, _ = components(flat == plateau, neighbours)
        for voxels, at in ((found.birth_voxel, found.birth), (found.death_voxel, found.death)):
            inside = voxels[at == plateau]
            for voxel in np.unique(inside):
                members = np.flatnonzero(numbers.ravel() == numbers.ravel()[voxel])
                assert voxel == members[extreme(volume.ravel()[members])]


def test_zero_and_none_leave_the_volume_as_it_is():
    volume = np.random.default_rng(0).standard_normal((6, 6, 6))
    assert np.array_equal(ours(diagram_of(volume, clamp=0.0)), ours(diagram_of(volume)))
