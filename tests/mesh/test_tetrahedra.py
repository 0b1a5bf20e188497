"""Tetrahedra: what the proof counts, found by other means, and proofs that must fail."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from anatomica.errors import AnatomicaError
from anatomica.mesh import tetwild
from anatomica.mesh.balance import balanced
from anatomica.mesh.tetproof import (
    histogram_lines,
    missing_faces,
    prove_tetrahedra,
    smallest_dihedral_deg,
    tet_sentence,
)
from anatomica.mesh.tetrahedra import TetOptions, Tetrahedra, _grid_tets, labels_at, tetrahedralize, volumes
from anatomica.mesh.topology import topology


def test_every_layer_is_there_and_positive(filled, surface) -> None:
    mesh, made = filled
    proof = prove_tetrahedra(mesh, surface, made)
    assert proof.holds
    assert mesh.present() == surface.present() == ("lumen", "wall", "lump")
    assert proof.smallest_dihedral_deg > 5
    assert sum(proof.histogram) == len(mesh.tetrahedra)
    for layer in proof.layers:
        assert layer.volume_error < 0.002
    assert proof.seconds > 0
    assert proof.peak_mb > 10
    assert "the proof holds" in tet_sentence(proof)
    assert len(histogram_lines(proof)) == 8


def test_faces_between_materials_are_closed_and_point_outwards(tetrahedra, surface) -> None:
    corners, sides, owner = tetrahedra.faces()
    for name in tetrahedra.present():
        id = tetrahedra.table.id_of(name)
        own = np.concatenate([corners[sides[:, 0] == id], corners[sides[:, 1] == id][:, ::-1]])
        found = topology(tetrahedra.vertices, own)
        assert found.closed
        assert found.betti == topology(surface.vertices, surface.of(name)).betti
        a, b, c = (tetrahedra.vertices[own[:, n]] for n in range(3))
        enclosed = np.einsum("ij,ij->i", a, np.cross(b, c)).sum() / 6000
        assert enclosed == pytest.approx(tetrahedra.volume_ml(name))
    np.testing.assert_array_equal(tetrahedra.material[owner], sides[:, 0])


def test_a_part_keeps_its_volume(tetrahedra) -> None:
    part = tetrahedra.of("wall")
    assert part.volume_ml("wall") == pytest.approx(tetrahedra.volume_ml("wall"))
    assert len(part.vertices) < len(tetrahedra.vertices)
    assert np.unique(part.tetrahedra).tolist() == list(range(len(part.vertices)))


def test_the_proof_sees_a_missing_and_an_inverted_tetrahedron(filled, surface) -> None:
    mesh, made = filled
    wall = np.flatnonzero(labels_at(surface, made.vertices[made.tetrahedra].mean(1)) == 2)[7]
    holed = made._replace(tetrahedra=np.delete(made.tetrahedra, wall, axis=0))
    assert missing_faces(made) == 0
    assert missing_faces(holed) == 4
    turned = mesh.tetrahedra.copy()
    turned[3] = turned[3, [1, 0, 2, 3]]
    assert prove_tetrahedra(replace(mesh, tetrahedra=turned), surface, made).inverted == 1
    wrong = mesh.material.copy()
    wrong[mesh.material == 1] = 2
    proof = prove_tetrahedra(replace(mesh, material=wrong), surface, made)
    assert not proof.holds
    assert [x.tetrahedra > 0 for x in proof.layers] == [False, True, True]


def test_dihedral_angles_of_known_tetrahedra(patient) -> None:
    regular = np.array([[1, 1, 1], [1, -1, -1], [-1, 1, -1], [-1, -1, 1]], dtype=float)
    corner = np.concatenate([np.zeros((1, 3)), np.eye(3)])
    vertices = np.concatenate([regular, corner])
    tets = np.array([[0, 2, 1, 3], [4, 5, 6, 7]], dtype=np.int32)
    tets[0] = tets[0] if volumes(vertices, tets)[0] > 0 else tets[0][[1, 0, 2, 3]]
    mesh = Tetrahedra(vertices, tets, np.ones(2, dtype=np.int32), patient.table)
    expected = np.degrees([np.arccos(1 / 3), np.arccos(1 / np.sqrt(3))])
    np.testing.assert_allclose(smallest_dihedral_deg(mesh), expected)
    np.testing.assert_allclose(mesh.volumes_mm3(), [8 / 3, 1 / 6])


def test_labels_by_winding_are_those_of_the_voxels(patient, surface) -> None:
    index = np.argwhere(np.ones(patient.shape, dtype=bool))
    points = (index + 1e-6) @ patient.affine[:3, :3].T + patient.affine[:3, 3]
    np.testing.assert_array_equal(labels_at(surface, points), patient.array.ravel())
    kept = surface.across != 3
    lidless = replace(surface, **{k: getattr(surface, k)[kept] for k in ("triangles", "sides", "across")})
    with pytest.raises(AnatomicaError, match="not closed"):
        labels_at(lidless, points)


def test_balance_reaches_several_volumes_at_once(surface) -> None:
    wanted = {1: 1030.0 * surface.volume_ml("lumen"), 2: 990.0 * surface.volume_ml("wall")}
    moved = balanced(surface.vertices, surface.triangles, surface.sides, wanted)
    after = replace(surface, vertices=moved)
    assert after.volume_ml("lumen") * 1000 == pytest.approx(wanted[1], rel=1e-6)
    assert after.volume_ml("wall") * 1000 == pytest.approx(wanted[2], rel=1e-6)
    assert np.abs(moved - surface.vertices).max() < 0.5


def test_finer_near_a_tissue(surface, tetrahedra) -> None:
    options = TetOptions(edge_mm=8.0, tolerance_mm=0.5, energy=20.0, fine=("lump",), fine_edge_mm=2.0)
    mesh, _ = tetrahedralize(surface, options)
    assert len(mesh.of("lump").tetrahedra) > 2 * len(tetrahedra.of("lump").tetrahedra)


def test_the_grid_of_sizes_fills_its_box() -> None:
    counts = np.array([2, 3, 4])
    points = np.stack(np.meshgrid(*[np.arange(n + 1.0) for n in counts], indexing="ij"), -1).reshape(-1, 3)
    volume = volumes(points, _grid_tets(counts))
    np.testing.assert_allclose(volume, 1 / 6)
    assert len(volume) == 6 * 24


@pytest.mark.skipif(not Path("/proc/self/status").exists(), reason="only Linux tells")
def test_the_memory_is_that_of_the_mesher_only(surface) -> None:
    ours = np.ones(40_000_000)  # 320 MB that a child of this process must not count as its own
    _, made = tetrahedralize(surface, TetOptions(edge_mm=8.0, tolerance_mm=0.5, energy=20.0))
    assert 10 < made.peak_mb < ours.nbytes / 2**20


def test_failures_are_sentences(surface) -> None:
    with pytest.raises(AnatomicaError, match="tolerance of 9 mm must be above 0 and below"):
        tetrahedralize(surface, TetOptions(edge_mm=8.0, tolerance_mm=9.0))
    with pytest.raises(AnatomicaError, match="must be shorter than the others, 8 mm"):
        tetrahedralize(surface, TetOptions(edge_mm=8.0, fine=("lump",), fine_edge_mm=9.0))
    with pytest.raises(AnatomicaError, match=r"edges of 0.01 mm would need about .* at most 2e\+07 are made"):
        tetrahedralize(surface, TetOptions(edge_mm=0.01, tolerance_mm=0.001))
    with pytest.raises(AnatomicaError, match="fTetWild ended with code 1: TypeError"):
        tetwild.run({"vertices": surface.vertices})
