"""Mending: what is misplaced goes to what it touches, and nothing else changes."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from anatomica.anatomy.catalogue import anatomy
from anatomica.anatomy.label_map import LabelMap, cube_affine
from anatomica.data.phantoms import phantom
from anatomica.generation.draw import _finished, decode, generate
from anatomica.generation.options import Options
from anatomica.generation.plausibility import strange_contacts
from anatomica.generation.repair.mending import close_gaps, mend
from anatomica.generation.resolve import resolve_for
from anatomica.measurement.certificate import certificate
from anatomica.measurement.pieces import CRUMB, detached_voxels, find_pieces
from anatomica.prior.neighbours import Neighbours, neighbours_of
from anatomica.prior.zoo import load_model
from anatomica.spec.yaml import parse_spec
from tiny_prior import save_tiny_model

N = 16


def slabs() -> np.ndarray:
    """Tissues 1, 2, 3 on top of one another, 4 x 8 x 8 voxels each: 1 touches 2 and 2 touches 3."""
    labels = np.zeros((N, N, N), np.uint8)
    for c in (1, 2, 3):
        labels[4 * c - 2 : 4 * c + 2, 4:12, 4:12] = c
    return labels


SLABS = neighbours_of([slabs()], 4)


def test_neighbours_are_what_patients_show() -> None:
    assert SLABS.touching.tolist() == [
        [False, True, True, True],
        [True, False, True, False],
        [True, True, False, True],
        [True, False, True, False],
    ]
    assert SLABS.in_a_row
    assert SLABS.whole.tolist() == [False, True, True, True]


def test_a_tissue_that_comes_in_crumbs_is_not_whole() -> None:
    crumbly = slabs()
    crumbly[3, 5, 5] = 2
    assert neighbours_of([slabs(), crumbly], 4).whole.tolist() == [False, True, False, True]
    assert neighbours_of([slabs()] * 30 + [crumbly], 4).whole.tolist() == [False, True, True, True]


def test_what_touches_in_one_patient_of_a_thousand_is_an_accident() -> None:
    odd = slabs()
    odd[3, 5, 5] = 3
    assert not neighbours_of([slabs()] * 999 + [odd], 4).touching[1, 3]
    assert neighbours_of([slabs()] * 99 + [odd], 4).touching[1, 3]


def test_patients_are_joined_unless_some_lie_apart() -> None:
    apart = slabs()
    apart[0, 0, 0] = 1
    assert detached_voxels(slabs()) == 0
    assert detached_voxels(apart) == 1
    assert detached_voxels(np.zeros((4, 4, 4), np.uint8)) == 0
    assert SLABS.joined
    assert not neighbours_of([slabs(), apart], 4).joined


def test_a_strange_speck_becomes_part_of_what_it_lies_in() -> None:
    labels = slabs()
    labels[3:5, 5:7, 5] = 3
    np.testing.assert_array_equal(mend(labels, SLABS), slabs())


def test_a_crumb_between_neighbours_becomes_part_of_what_it_lies_in() -> None:
    labels = slabs()
    labels[3, 5, 5] = 2
    np.testing.assert_array_equal(mend(labels, SLABS), slabs())
    crumbly = replace(SLABS, whole=np.array([False, True, False, True]))
    np.testing.assert_array_equal(mend(labels, crumbly), labels)


def tube() -> np.ndarray:
    """A lumen (1) with calcium (2) beside it, both in a wall (3) that is open at the cube's ends alone."""
    labels = np.zeros((N, N, N), np.uint8)
    labels[3:13, 3:13] = 3
    labels[6:10, 6:10] = 1
    labels[10, 7:9, 6:10] = 2
    return labels


def test_a_hole_in_a_wall_is_closed() -> None:
    """What was lumen or calcium beside the background is wall; nothing behind it changes."""
    neighbours = neighbours_of([tube()], 4)
    np.testing.assert_array_equal(close_gaps(tube(), neighbours), tube())
    labels = tube()
    labels[10:13, 7, 7] = 0
    labels[3:6, 8, 8] = 0
    mended = close_gaps(labels, neighbours)
    where = np.argwhere(mended != labels).tolist()
    assert where == [[6, 8, 8], [9, 7, 7], [10, 7, 6], [10, 7, 8], [10, 8, 7]]
    assert {mended[tuple(at)] for at in where} == {3}
    np.testing.assert_array_equal(close_gaps(slabs(), SLABS), slabs())


def test_a_large_piece_is_no_crumb() -> None:
    labels = slabs()
    labels[2, 4:12, 4:12] = 2
    assert CRUMB * (labels[5:] == 2).sum() < 64
    wide = replace(SLABS, contact=2 * SLABS.contact)
    np.testing.assert_array_equal(mend(labels, wide), labels)
    # Here it touches more widely than in patients.
    np.testing.assert_array_equal(mend(labels, SLABS), slabs())


def test_what_lies_alone_stays() -> None:
    labels = slabs()
    labels[0, 0, 0] = 3
    np.testing.assert_array_equal(mend(labels, SLABS), labels)


def test_a_mended_speck_joins_what_it_had_parted() -> None:
    """A sheet of 3 cuts tissue 1 in two: with its label the halves are one piece again."""
    labels = slabs()
    labels[2:6, 7, 4:12] = 3
    _, pieces = find_pieces(labels)
    assert len(pieces.alive()) == 5
    np.testing.assert_array_equal(mend(labels, SLABS), slabs())


def test_a_trace_of_what_patients_may_lack_is_nothing() -> None:
    """Half of the patients have 16 or 32 voxels of tissue 3 in a corner: 13 are a trace, 14 are not."""
    patients = [slabs() for _ in range(4)]
    for labels, rows in zip(patients, (0, 0, 1, 2), strict=True):
        labels[labels == 3] = 0
        labels[15, :rows, :] = 3
    neighbours = neighbours_of(patients, 4)
    np.testing.assert_array_equal(neighbours.least, [0, 0, 0, 16 / N**3])
    for count in (13, 14):
        labels = patients[0].copy()
        labels[15, 0, :count] = 3
        np.testing.assert_array_equal(mend(labels, neighbours), labels if count == 14 else patients[0])


@settings(max_examples=60, deadline=None)
@given(arrays(np.uint8, (6, 5, 4), elements=st.integers(0, 3)))
def test_no_misplaced_piece_has_a_larger_neighbour_left(labels: np.ndarray) -> None:
    mended = mend(labels, SLABS)
    np.testing.assert_array_equal(mended > 0, labels > 0)
    assert set(np.unique(mended)) <= set(np.unique(labels))
    np.testing.assert_array_equal(mend(mended, SLABS), mended)
    number, pieces = find_pieces(mended)
    for i in pieces.alive():
        around = pieces.faces[i]
        largest = max(pieces.size[k] for k in pieces.of_tissue[pieces.tissue[i]])
        strange = sum(f for k, f in around.items() if not SLABS.touching[pieces.tissue[i], pieces.tissue[k]])
        if around and (2 * strange > around.total() or pieces.size[i] < CRUMB * largest):
            assert max(pieces.size[k] for k in around) <= pieces.size[i] == (number == i).sum()


@pytest.mark.parametrize("name", ["cardiac", "aortic", "spinal", "coronary"])
def test_patients_are_in_order(name: str) -> None:
    """The shipped models' neighbours change next to nothing in a patient that they have not seen."""
    neighbours = load_model(name).neighbours
    assert neighbours is not None
    label_map = phantom(name, 100_000, 64).label_map
    labels = label_map.table.index[label_map.array]
    assert (mend(labels, neighbours) != labels).sum() <= 0.001 * (labels > 0).sum()


def test_vertebrae_touch_the_next_alone() -> None:
    neighbours = load_model("spinal").neighbours
    assert neighbours is not None
    rows, columns = np.nonzero(neighbours.touching[1:, 1:])
    assert set(np.abs(rows - columns)) == {1}
    assert neighbours.in_a_row


@pytest.mark.parametrize("name", ["cardiac", "aortic", "coronary"])
def test_other_tissues_stand_in_no_row(name: str) -> None:
    neighbours = load_model(name).neighbours
    assert neighbours is not None
    assert not neighbours.in_a_row


def test_a_vertebra_of_two_labels_has_one_again() -> None:
    """One side of a vertebra is labelled as the next one: most of it gets its own label again."""
    neighbours = load_model("spinal").neighbours
    assert neighbours is not None
    label_map = phantom("spinal", 100_000, 64).label_map
    labels = label_map.table.index[label_map.array]
    middle = np.unique(labels)[len(np.unique(labels)) // 2]
    broken = labels.copy()
    broken[:29][labels[:29] == middle] = middle + 1
    wrong = (broken != labels).sum()
    mended = mend(broken, neighbours)
    assert wrong > 300
    assert (mended != labels).sum() < 0.25 * wrong


def test_a_card_keeps_them_by_name() -> None:
    table = anatomy("coronary").table
    kept = SLABS.to_dict(table)
    assert kept == {
        "contact": {
            "background": {"Lu": 0.75, "Ca": 0.5, "Ve": 0.75},
            "Lu": {"background": 0.75, "Ca": 0.25},
            "Ca": {"background": 0.5, "Lu": 0.25, "Ve": 0.25},
            "Ve": {"background": 0.75, "Ca": 0.25},
        },
        "whole": ["Lu", "Ca", "Ve"],
        "least": {},
        "joined": True,
        "single": ["Lu", "Ca", "Ve"],
    }
    again = Neighbours.from_dict(kept, table)
    np.testing.assert_allclose(again.contact, SLABS.contact)
    np.testing.assert_array_equal(again.whole, SLABS.whole)
    kept["least"] = {"Ca": 0.125}
    assert Neighbours.from_dict(kept, table).least.tolist() == [0, 0, 0.125, 0]


def test_a_card_of_before_still_mends_and_calls_nothing_wide_strange(tmp_path) -> None:
    """It lists what touches, without areas and without the background."""
    model = load_model(save_tiny_model(tmp_path))
    touching = {"Lu": ["Ca"], "Ca": ["Lu", "Ve"], "Ve": ["Ca"]}
    before = {"touching": touching, "whole": ["Lu", "Ca", "Ve"], "least": {}, "joined": True}
    old = Neighbours.from_dict(before, model.table)
    np.testing.assert_array_equal(old.touching, SLABS.touching)
    labels = slabs()
    labels[3:5, 5:7, 5] = 3
    np.testing.assert_array_equal(mend(labels, old), slabs())
    assert strange_contacts(replace(model, neighbours=old), model.label_map(slabs())) == ()


SPEC = """
name: x
anatomy: coronary
constraints:
- name: wall
  structure: [Ve]
  domain: {family: global, grid: [16, 16, 16]}
  target: {betti: {b0: COUNT}}
"""


@pytest.mark.parametrize(("count", "mended"), [(1, 1), (2, 0)])
def test_a_met_target_is_not_mended_away(tmp_path, count: int, mended: int) -> None:
    model = replace(load_model(save_tiny_model(tmp_path)), neighbours=SLABS)
    spec = parse_spec(SPEC.replace("COUNT", str(count)))
    resolved = resolve_for(model, spec)
    array = slabs()
    array[3, 5, 5] = 3
    label_map = LabelMap(array, cube_affine(model.edge_mm, N), model.table)
    checks = certificate(label_map, resolved, model.frame.anatomy)
    assert [c.met for c in checks] == [count == 2]
    out, new, changed = _finished(model, label_map, resolved, Options())
    assert [c.met for c in new] == [True]
    assert changed == mended
    np.testing.assert_array_equal(out.array, slabs() if mended else array)


def test_generate_says_what_it_mended(tmp_path) -> None:
    """Beside neighbours that never touch, all that touches becomes one tissue."""
    apart = Neighbours(np.zeros((4, 4)), np.zeros(4, bool), np.zeros(4), False, np.zeros(4, bool))
    model = replace(load_model(save_tiny_model(tmp_path)), neighbours=apart)
    (raw,) = generate(model, seeds=[3], options=Options(steps=2, tries=1, repair=False))
    (made,) = generate(model, seeds=[3], options=Options(steps=2, tries=1))
    assert raw.mended == 0
    (decoded,) = decode(model, made.latent[None], model.n)
    assert made.mended == (made.label_map.array != decoded.array).sum() > 0
