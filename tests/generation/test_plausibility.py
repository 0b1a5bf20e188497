"""A sample is unusual where a tissue's volume is far from every training patient's."""

from dataclasses import replace

import numpy as np
import pytest
import torch
from scipy import ndimage

from anatomica.anatomy.label_map import LabelMap, cube_affine
from anatomica.cli.sampling import unlike_training, verdict
from anatomica.data.phantoms import phantom
from anatomica.generation.plausibility import (
    AREA,
    ROOM,
    Patchwork,
    Unusual,
    detached,
    misshapen,
    oddities,
    sentence,
    split_tissues,
    strange_contacts,
    unusual_tissues,
)
from anatomica.generation.sample import Sample
from anatomica.prior.neighbours import BEYOND, neighbours_of
from anatomica.prior.population import label_moments, semi_axes
from anatomica.prior.zoo import Model, load_model
from anatomica.report.tally import tally
from oracles import voxel_centres
from tiny_prior import save_tiny_model


@pytest.fixture(scope="module")
def model(tmp_path_factory) -> Model:
    """Two patients with 100 and 200 voxels of 16^3 of the first tissue, and 50 of the second in one alone."""
    loaded = load_model(save_tiny_model(tmp_path_factory.mktemp("model")))
    population = torch.zeros(2, len(loaded.table.ids), 10)
    population[:, 1, 0] = torch.tensor([100.0, 200.0]) / 16**3
    population[0, 2, 0] = 50 / 16**3
    shapes = patient(loaded, 100, 50)
    moments = label_moments(torch.from_numpy(loaded.table.index[shapes.array]), len(loaded.table.ids))
    population[:, 1:3, 4:] = torch.from_numpy(moments[1:3, 4:]).float()
    return replace(loaded, population=population)


def patient(model: Model, *counts: int) -> LabelMap:
    """A label map with so many voxels of the first tissues."""
    array = np.zeros(16**3, dtype=np.uint8)
    start = 0
    for label, count in zip(model.table.ids[1:], counts, strict=False):
        array[start : start + count] = label
        start += count
    return LabelMap(array.reshape(16, 16, 16), cube_affine(model.edge_mm, 16), model.table)


@pytest.mark.parametrize(
    ("counts", "odd"),
    [((100, 50), ()), ((84, 0), ()), ((239, 59), ()), ((83, 50), (0,)), ((241,), (0,)), ((150, 61), (1,))],
)
def test_volumes_far_from_all_patients_are_unusual(model: Model, counts, odd) -> None:
    found = unusual_tissues(model, patient(model, *counts))
    assert [u.tissue for u in found] == [model.table.tissues[i] for i in odd]


def test_a_branch_that_ends_in_a_stub_is_misshapen() -> None:
    """The patient itself is not; with its left subclavian artery cut off behind the origin that is named."""
    model = load_model("aortic")
    whole = phantom("aortic", 900_003, model.n).label_map
    assert misshapen(model, whole) == ()
    branch, trunk = (whole.array == whole.table.id_of(name) for name in ("LSCA", "Ao"))
    origin = np.argwhere(branch & ndimage.binary_dilation(trunk)).mean(0)
    far = np.linalg.norm(np.argwhere(branch) - origin, axis=1) > 6
    array = whole.array.copy()
    array[tuple(np.argwhere(branch)[far].T)] = 0
    (stub,) = misshapen(model, replace(whole, array=array))
    assert stub.tissue == "LSCA"
    assert stub.semi_axis_mm < stub.least_mm / BEYOND


def test_a_solid_ellipsoid_has_its_semi_axes() -> None:
    inside = (((voxel_centres(64) - 0.5) / (0.1, 0.2, 0.3)) ** 2).sum(-1) < 1
    labels = torch.from_numpy(inside.astype(np.uint8))
    np.testing.assert_allclose(semi_axes(label_moments(labels, 2))[1], (0.1, 0.2, 0.3), rtol=0.01)


def test_a_tissue_is_missed_if_every_patient_has_it(model: Model) -> None:
    (missing,) = unusual_tissues(model, patient(model))
    assert missing.volume_ml == 0
    assert str(missing) == f"no {model.table.tissues[0]}"


def test_nothing_is_unusual_without_a_population(model: Model) -> None:
    assert unusual_tissues(replace(model, population=None), patient(model, 4000)) == ()


def test_the_verdict_counts_met_samples_that_are_no_anatomy(model: Model) -> None:
    made = [
        Sample(seed=seed, label_map=patient(model, 400), latent=torch.zeros(3, 4, 4, 4), seconds=1.0)
        for seed in (4, 5)
    ]
    assert verdict(tally(made)) == "2 of 2 valid; "
    made[0] = replace(made[0], unusual=unusual_tissues(model, made[0].label_map))
    assert verdict(tally(made)) == "1 of 2 valid (1 met, but implausible); "
    (line,) = unlike_training(made, tally(made))
    assert line.startswith("seed 4 is implausible")
    assert unlike_training(made[1:], tally(made)) == ["1 more samples are implausible; report.json says why"]


def test_a_long_list_is_cut() -> None:
    many = [Unusual(f"T{i}", 1.0, 2.0, 3.0) for i in range(5)]
    assert sentence(many).endswith("T2 1 mL (training 2 to 3 mL) and 2 more")


def test_tissues_that_touch_in_no_patient_are_strange(model: Model) -> None:
    """Two blocks side by side; in the patients they lie apart, or touch with as few faces as may be."""
    first, _, last = model.table.ids[1:4]
    array = np.zeros((16, 16, 16), np.uint8)
    array[:4, :4, :4] = first
    apart, touching = array.copy(), array.copy()
    apart[5:8, :4, :4] = touching[4:8, :4, :4] = last
    found, learned = (LabelMap(a, cube_affine(model.edge_mm, 16), model.table) for a in (touching, apart))
    strict = replace(model, neighbours=neighbours_of([learned.array], len(model.table)))
    (contact,) = strange_contacts(strict, found)
    assert (contact.tissue, contact.other) == (model.table.names[1], model.table.names[3])
    assert contact.area_mm2 == pytest.approx(16 * (model.edge_mm / 16) ** 2)
    assert contact in oddities(strict, found)
    assert str(contact) == f"Lu touches Ve ({contact.area_mm2:.4g} mm2; in training never)"
    used = replace(model, neighbours=neighbours_of([found.array], len(model.table)))
    assert strange_contacts(used, found) == strange_contacts(strict, learned) == ()
    assert strange_contacts(model, found) == ()
    assert AREA * 16**2 < 1


def test_tissues_that_touch_far_more_widely_than_patients_are_strange(model: Model) -> None:
    first, second = model.table.ids[1:3]

    def blocks(width: int) -> LabelMap:
        array = np.zeros((16, 16, 16), np.uint8)
        array[:4, :10, :width] = first
        array[4:8, :10, :width] = second
        return LabelMap(array, cube_affine(model.edge_mm, 16), model.table)

    used = replace(model, neighbours=neighbours_of([blocks(10).array], len(model.table)))
    assert used.neighbours is not None
    assert used.neighbours.in_a_row
    (contact,) = (c for c in strange_contacts(used, blocks(13)) if c.tissue != "background")
    face_mm2 = (model.edge_mm / 16) ** 2
    assert (contact.area_mm2, contact.most_mm2) == pytest.approx((130 * face_mm2, 100 * face_mm2))
    assert str(contact).endswith(f"in training at most {contact.most_mm2:.4g})")
    assert strange_contacts(used, blocks(12)) == strange_contacts(used, blocks(3)) == ()
    apart = used.neighbours.contact.copy()
    apart[1, 3] = apart[3, 1] = 0.1
    organs = replace(used, neighbours=replace(used.neighbours, contact=apart))
    room = BEYOND * 100 / 256 + ROOM
    assert 121 / 256 < room < 122 / 256
    assert any(c.tissue == "Lu" for c in strange_contacts(organs, blocks(13)))
    for extra, strange in ((0, False), (1, False), (2, True)):
        wider = blocks(12).array.copy()
        wider[:4, 10, :extra], wider[4:8, 10, :extra] = first, second
        found = LabelMap(wider, cube_affine(model.edge_mm, 16), model.table)
        assert any(c.tissue == "Lu" for c in strange_contacts(organs, found)) == strange


def test_what_lies_apart_is_odd_if_patients_are_in_one_piece(model: Model) -> None:
    whole = patient(model, 100)
    broken = whole.array.copy()
    broken[12:, 12:, 12:] = model.table.ids[1]
    found = LabelMap(broken, whole.affine, whole.table)
    joined = replace(model, neighbours=neighbours_of([whole.array], len(model.table)))
    (apart,) = detached(joined, found)
    assert apart.volume_ml == pytest.approx(64 * whole.voxel_ml)
    assert apart in oddities(joined, found)
    assert detached(joined, whole) == ()
    assert detached(replace(model, neighbours=neighbours_of([broken], len(model.table))), found) == ()


def test_a_tissue_in_pieces_is_odd_if_patients_have_it_in_one(model: Model) -> None:
    whole = np.zeros((16, 16, 16), np.uint8)
    first = model.table.ids[1]
    whole[2:14, 7, 7] = first
    broken = whole.copy()
    broken[7, 7, 7] = model.table.ids[2]  # still in one piece with the rest, but not by itself
    affine = cube_affine(model.edge_mm, 16)
    found = LabelMap(broken, affine, model.table)
    known = replace(model, neighbours=neighbours_of([whole], len(model.table)))
    (split,) = split_tissues(known, found)
    assert (split.tissue, split.volume_ml) == (model.table.names[1], pytest.approx(5 * found.voxel_ml))
    assert split in oddities(known, found)
    assert split_tissues(known, LabelMap(whole, affine, model.table)) == ()
    assert split_tissues(replace(model, neighbours=neighbours_of([broken], len(model.table))), found) == ()
    cut = LabelMap(np.roll(broken, 2, 0), affine, model.table)
    assert split_tissues(known, cut) == ()  # the side of the cube may part what is one


def test_a_map_that_was_mended_all_over_is_no_anatomy(model: Model) -> None:
    found = patient(model, 100, 50)
    assert oddities(model, found, mended=15) == ()
    assert oddities(model, found, mended=16) == (Patchwork(16 / 150),)
