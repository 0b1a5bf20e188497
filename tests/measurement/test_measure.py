import json

import numpy as np
import pytest
import torch

from anatomica.anatomy import nifti
from anatomica.anatomy.catalogue import ANATOMIES
from anatomica.anatomy.frame import Frame
from anatomica.anatomy.label_map import LabelMap, cube_affine
from anatomica.errors import AnatomicaError
from anatomica.measurement.measure import domain_dict, measure, to_dict
from anatomica.measurement.placing import resolve
from anatomica.spec.tasks import task
from anatomica.spec.yaml import parse_spec
from oracles import torus, two_ventricles

CARDIAC = ANATOMIES["cardiac"]


def test_without_a_spec_every_tissue_is_measured_as_a_whole() -> None:
    heart = two_ventricles()
    result = measure(heart, resolution=64)
    assert [m.constraint.name for m in result.measured] == ["LA", "LV", "RV"]
    for m in result.measured:
        d = domain_dict(m, 0, result.frame)
        assert d["volume_ml"] == pytest.approx(heart.volume_ml(m.constraint.name), rel=0.01)
        assert d["betti"] == {"b0": 1, "b1": 0, "b2": 0}
    rv = domain_dict(result.measured[2], 0, result.frame)
    np.testing.assert_allclose(rv["centroid_mm"], (np.array([0.62, 0.5, 0.45]) - 0.5) * 256, atol=0.6)
    np.testing.assert_allclose(rv["ellipsoid_semi_axes_mm"], 256 * np.array([0.13, 0.09, 0.08]), rtol=0.03)


@pytest.mark.parametrize("name", ["right-ventricle", "mitral-valve"])
def test_tasks_measure_what_counting_voxels_gives(name: str) -> None:
    heart = two_ventricles()
    result = measure(heart, task(name), resolution=64)
    for m in result.measured:
        assert m.domains.valid.all()
    if name == "right-ventricle":
        d = domain_dict(result.measured[0], 0, result.frame)
        assert d["volume_ml"] == pytest.approx(heart.volume_ml("RV"), rel=0.03)
        np.testing.assert_allclose(d["size_mm"], 256 * 2 * np.array([0.09, 0.08, 0.13]), atol=4.1)


def test_measuring_does_not_depend_on_the_files_orientation() -> None:
    heart = two_ventricles()
    turned = LabelMap(
        np.ascontiguousarray(heart.array.transpose(2, 0, 1)[::-1]),
        heart.affine @ np.array([[0, 1, 0, 0], [0, 0, 1, 0], [-1, 0, 0, 63], [0, 0, 0, 1.0]]),
        heart.table,
    )
    from anatomica.anatomy.label_map import to_ras

    straight, back = measure(heart, resolution=64), measure(to_ras(turned), resolution=64)
    for a, b in zip(straight.measured, back.measured, strict=True):
        torch.testing.assert_close(a.moments.centroid, b.moments.centroid)
        torch.testing.assert_close(a.moments.covariance, b.moments.covariance)


def test_the_cube_grows_to_hold_all_tissue() -> None:
    n = 160
    array = np.zeros((n, n, n), np.uint8)
    array[4:156, 70:90, 70:90] = CARDIAC.table.id_of("Ao")
    long = LabelMap(array, np.diag([2.0, 2.0, 2.0, 1.0]), CARDIAC.table)
    result = measure(long)
    assert result.frame.edge_mm > 256
    assert domain_dict(result.measured[0], 0, result.frame)["volume_ml"] == pytest.approx(
        long.volume_ml("Ao"), rel=0.01
    )


def test_betti_numbers_of_a_structure_in_a_turned_box() -> None:
    array = torus(64).astype(np.uint8) * CARDIAC.table.id_of("Ao")
    ring = LabelMap(array, cube_affine(256.0, 64), CARDIAC.table)
    spec = parse_spec(
        "name: ring\nanatomy: cardiac\nconstraints:\n"
        "- {name: whole, structure: [Ao], domain: {family: global, grid: [8, 8, 8]}}\n"
        "- {name: turned, structure: [Ao], domain: {family: box, grid: [64, 64, 64], centre_mm: [0, 0, 0],"
        " size_mm: [240, 240, 240], rotation_deg: [0, 0, 30]}}\n"
        "- {name: half, structure: [Ao], domain: {family: box, grid: [8, 8, 8], centre_mm: [64, 0, 0],"
        " size_mm: [128, 256, 256]}}\n"
    )
    result = measure(ring, spec, resolution=64)
    assert [m.betti[0] for m in result.measured] == [(1, 1, 0), (1, 1, 0), (1, 0, 0)]


def test_targets_in_millilitres_and_millimetres_become_cube_units() -> None:
    spec = parse_spec(
        "name: x\nanatomy: cardiac\nconstraints:\n- name: lv\n  structure: [LV]\n"
        "  domain: {family: global, grid: [32, 32, 32]}\n"
        "  target: {volume_ml: 140, centroid_mm: [-20, 10, 0], axes_mm: [40, 20, 20],"
        " rotation_deg: [0, 0, 90]}\n"
    )
    (r,) = resolve(spec, Frame.model(CARDIAC, 64))
    assert r.wanted.mass is not None
    assert r.wanted.centroid is not None
    assert r.wanted.shape is not None
    assert r.wanted.mass.item() == pytest.approx(140_000 / 256**3)
    np.testing.assert_allclose(r.wanted.centroid[0], 0.5 + np.array([-20, 10, 0]) / 256)
    np.testing.assert_allclose(r.wanted.shape[0], np.diag([1 / 6, 2 / 3, 1 / 6]), atol=1e-12)
    assert r.selection == (3,)


def test_a_domain_that_needs_an_anatomy_says_so() -> None:
    with pytest.raises(AnatomicaError, match="cartesian domain is placed on a reference anatomy"):
        resolve(task("right-ventricle"), Frame.model(CARDIAC, 64))


def test_a_reference_gives_domains_and_targets() -> None:
    heart = two_ventricles()
    (r,) = resolve(task("right-ventricle"), Frame.of(heart, CARDIAC), heart)
    assert r.wanted.mass is not None
    assert r.wanted.mass.item() * 256**3 / 1000 == pytest.approx(heart.volume_ml("RV"), rel=0.03)
    missing = LabelMap(np.where(heart.array == 5, 0, heart.array), heart.affine, heart.table)
    (r,) = resolve(task("right-ventricle"), Frame.of(missing, CARDIAC), missing)
    assert not r.domains.valid.any()


def test_the_json_names_its_units_and_reasons() -> None:
    heart = two_ventricles()
    result = measure(heart, task("aortic-trunk"), resolution=64)
    data = json.loads(json.dumps(to_dict(result)))
    assert data["frame"]["edge_mm"] == 256
    domains = data["constraints"][0]["domains"]
    assert len(domains) == 5
    assert all(not d["valid"] and d["reason"] for d in domains)


def test_real_vertebrae_measure_in_ml_what_counting_voxels_gives() -> None:
    """CT vertebra masks that the tptbox package brings with its tests."""
    from pathlib import Path

    import TPTBox

    path = Path(TPTBox.__file__).parent / "tests/sample_ct/sub-ct_seg-vert_label-22_msk.nii.gz"
    spine = nifti.load(path, ANATOMIES["spinal"], "verse")
    result = measure(spine)
    assert len(result.measured) >= 2
    for m in result.measured:
        counted = spine.volume_ml(*m.constraint.structure)
        assert domain_dict(m, 0, result.frame)["volume_ml"] == pytest.approx(counted, rel=0.01)


def test_a_sliver_at_the_edge_of_a_thick_sliced_scan_keeps_its_volume() -> None:
    """Two slices of 3 mm of an organ that the scan cut off: its flat face lies between voxels of the cube."""
    array = np.zeros((40, 40, 20), np.uint8)
    table = ANATOMIES["spinal"].table
    array[10:25, 12:30, :2] = table.id_of("L3")
    array[5:20, 5:20, 4:18] = table.id_of("L4")
    scan = LabelMap(array, np.diag([1.7, 1.7, 3.1, 1.0]), table)
    result = measure(scan)
    for m in result.measured:
        counted = scan.volume_ml(*m.constraint.structure)
        assert domain_dict(m, 0, result.frame)["volume_ml"] == pytest.approx(counted, rel=0.005)
