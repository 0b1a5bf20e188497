"""What the documentation promises: connectivity, essential class, ties, shapes, options, errors."""

import numpy as np
import pytest
import shapes
from rivals import diagram_of, diagrams_of, ours

from anatomica.errors import AnatomicaError
from anatomica.measurement.homology import Diagram, betti_numbers, persistence


@pytest.mark.parametrize(
    ("solid", "betti"),
    [
        (shapes.ball, (1, 0, 0)),
        (shapes.shell, (1, 0, 1)),
        (shapes.torus, (1, 1, 0)),
        (shapes.double_torus, (1, 2, 0)),
    ],
)
@pytest.mark.parametrize("construction", ["V", "T"])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_solids(solid, betti, construction, dtype):
    volume = solid(40).astype(dtype)
    assert diagram_of(volume, construction=construction).betti(0.0) == betti
    binary = (volume >= 0).astype(dtype)
    assert diagram_of(binary, construction=construction).betti(0.5) == betti


def test_torus_surface_has_two_loops_and_a_void():
    surface = 0.11 - abs(shapes.torus(48) - 0.02)
    assert diagram_of(surface).betti(0.0) == (1, 2, 1)


def test_foreground_is_connected_through_faces_in_v_and_corners_in_t():
    volume = np.zeros((2, 2, 2))
    volume[0, 0, 0] = volume[1, 1, 1] = 1.0
    assert diagram_of(volume, construction="V").betti(1.0) == (2, 0, 0)
    assert diagram_of(volume, construction="T").betti(1.0) == (1, 0, 0)


def test_the_boundary_is_open():
    """A hole that reaches the volume's faces is no void: nothing is added around the volume."""
    volume = np.ones((3, 3, 3))
    volume[1, 1, :] = 0.0
    assert diagram_of(volume).betti(1.0) == (1, 1, 0)
    volume[1, 1, 0] = volume[1, 1, 2] = 1.0
    assert diagram_of(volume).betti(1.0) == (1, 0, 1)


@pytest.mark.parametrize("construction", ["V", "T"])
def test_essential_class_spans_the_range(construction):
    volume = np.random.default_rng(0).standard_normal((5, 6, 7))
    diagram = diagram_of(volume, construction=construction)
    (row,) = np.flatnonzero(diagram.essential)
    assert diagram.dim[row] == 0
    assert diagram.birth_voxel[row] == volume.argmax()
    assert diagram.death_voxel[row] == volume.argmin()


@pytest.mark.parametrize("construction", ["V", "T"])
@pytest.mark.parametrize("shape", [(1, 1, 1), (1,), (4, 4), (3, 1, 5), (12, 12, 12)])
def test_constant_volume_is_empty(shape, construction):
    for value in (0.0, -0.0, 3.5):
        diagram = diagram_of(np.full(shape, value), construction=construction)
        assert all(len(column) == 0 for column in diagram)


def test_empty_batches():
    assert persistence(np.zeros((0, 4, 4, 4))) == []
    assert persistence([]) == []
    assert len(diagram_of(np.zeros((0, 4, 4))).dim) == 0


def test_ties_are_broken_by_index():
    """Two equal peaks: the one of lower index is older."""
    diagram = diagram_of(np.array([1.0, 0.0, 1.0, 0.5]))
    assert diagram.birth_voxel[diagram.essential] == 0
    assert diagram.birth_voxel[~diagram.essential] == 2


@pytest.mark.parametrize("dims", [(0,), (1,), (2,), (0, 1), (1, 2), (0, 2), ()])
@pytest.mark.parametrize("construction", ["V", "T"])
def test_asking_for_some_dimensions_gives_the_same_pairs(dims, construction):
    volume = np.random.default_rng(1).standard_normal((9, 10, 11)).astype(np.float32)
    whole = diagram_of(volume, construction=construction)
    rows = np.isin(whole.dim, dims)
    expected = Diagram(*(column[rows] for column in whole))
    for found, wanted in zip(diagram_of(volume, dims, construction), expected, strict=True):
        assert np.array_equal(found, wanted)


def test_min_persistence_and_top_select():
    volume = np.random.default_rng(2).random((10, 10, 10))
    whole = diagram_of(volume)
    long = diagram_of(volume, min_persistence=0.3)
    assert np.array_equal(ours(long), ours(Diagram(*(c[whole.persistence >= 0.3] for c in whole))))
    best = diagram_of(volume, top=7)
    for dim in range(3):
        lengths = np.sort(whole.of_dim(dim).persistence)[::-1]
        assert np.array_equal(best.of_dim(dim).persistence, lengths[:7])


def test_batches_are_lists_of_diagrams():
    batch = np.random.default_rng(3).random((5, 4, 5, 6))
    for threads in (1, 3, 8):
        for volume, diagram in zip(batch, diagrams_of(batch, threads=threads), strict=True):
            for found, wanted in zip(diagram, diagram_of(volume), strict=True):
                assert np.array_equal(found, wanted)
    mixed = [batch[0], batch[1, 0], batch[2, 0, 0].astype(np.float32)]
    for volume, diagram in zip(mixed, diagrams_of(mixed), strict=True):
        assert np.array_equal(ours(diagram), ours(diagram_of(volume)))


@pytest.mark.parametrize("dtype", [bool, np.uint8, np.int16, np.int64, np.float16, ">f4", ">f8"])
def test_other_types_are_converted(dtype):
    volume = np.random.default_rng(4).integers(0, 2, (6, 6, 6)).astype(dtype)
    assert np.array_equal(ours(diagram_of(volume)), ours(diagram_of(volume.astype(np.float32))))


def test_memory_layout_does_not_matter():
    volume = np.random.default_rng(5).random((6, 7, 8))
    for view in (volume.T, volume[::2, ::-1], np.asfortranarray(volume)):
        for found, wanted in zip(diagram_of(view), diagram_of(view.copy(order="C")), strict=True):
            assert np.array_equal(found, wanted)


def test_betti_numbers_at_every_threshold_agree_with_counting():
    """b0 by connected components, b2 by those of the background, b1 by the Euler number."""
    rng = np.random.default_rng(6)
    for _ in range(20):
        volume = np.round(shapes.values("smooth", tuple(rng.integers(2, 14, 3)), rng), 1)
        diagram = diagram_of(volume)
        for threshold in np.unique(volume)[1:]:
            assert diagram.betti(float(threshold)) == tuple(betti_numbers(volume >= threshold))


@pytest.mark.parametrize("seed", range(20))
def test_t_is_dual_to_v_of_the_negated_volume_in_a_shell(seed):
    """Alexander duality, with the shell made by hand: H_k of T dies where H_(2-k) of V is born."""
    rng = np.random.default_rng(seed)
    volume = shapes.values("ties", tuple(rng.integers(1, 8, 3)), rng).astype(np.float64)
    inside = diagram_of(np.pad(-volume, 1, constant_values=99.0))
    rows = (inside.birth < 99.0) & ~inside.essential
    dual = np.stack([2 - inside.dim, -inside.death, -inside.birth], axis=1)[rows] + 0.0
    found = diagram_of(volume, construction="T")
    essential = found.essential
    finite = ours(Diagram(*(column[~essential] for column in found)))
    np.testing.assert_array_equal(finite, dual[np.lexsort(dual.T)])


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"volume": np.array([0.0, np.nan])}, r"value nan at voxel \(1,\); expected finite"),
        ({"volume": np.array([[0.0, -np.inf]])}, r"value -inf at voxel \(0, 1\)"),
        ({"volume": np.zeros((1, 1, 1, 1, 1))}, "shape .1, 1, 1, 1, 1."),
        ({"volume": np.zeros(())}, r"shape \(\)"),
        ({"volume": np.zeros(3, complex)}, "complex128"),
        ({"volume": np.zeros(3), "dims": (0, 3)}, r"dims=\(0, 3\)"),
        ({"volume": np.zeros(3), "clamp": 0.5}, "clamp=0.5"),
        (
            {"volume": np.array([0.0, 1.5]), "clamp": 0.1},
            r"value 1.5 at voxel \(1,\); expected probabilities",
        ),
        ({"volume": np.zeros(3), "min_persistence": -1.0}, "min_persistence=-1.0"),
        ({"volume": np.zeros(3), "min_persistence": float("nan")}, "min_persistence=nan"),
        ({"volume": np.zeros(3), "top": 0}, "top=0"),
        ({"volume": np.zeros(3), "threads": 0}, "threads=0"),
        ({"volume": [np.zeros(3), np.array([np.nan])]}, "volume 1 has the value nan"),
    ],
)
def test_errors_quote_what_was_given(arguments, message):
    with pytest.raises(AnatomicaError, match=message):
        persistence(**arguments)
