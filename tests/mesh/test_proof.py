"""The proof of a surface holds for what the mesher makes, and fails for each way of spoiling it."""

from dataclasses import replace

import numpy as np
import pytest
from test_surface import random_map

from anatomica.mesh import Surface, prove, surface_of
from anatomica.mesh.proof import proof_html, proof_rows, proof_sentence


def with_faces(surface: Surface, faces) -> Surface:
    """The surface with only some of its triangles, some of them twice."""
    own = {name: getattr(surface, name)[faces] for name in ("triangles", "sides", "across")}
    return replace(surface, **own)


def test_a_surface_is_proved(patient, surface) -> None:
    proof = prove(surface, patient)
    assert proof.holds
    assert all(t.manifold and not t.where_mm for t in proof.tissues)
    assert "the proof holds" in proof_sentence(proof)
    assert [row[-1] for row in proof_rows(proof)] == ["no"] * 3


def test_a_missing_triangle_is_found_where_it_was(patient, surface) -> None:
    proof = prove(with_faces(surface, slice(1, None)), patient)
    assert not proof.holds
    (wrong,) = (t for t in proof.tissues if t.name == surface.table.by_id(int(surface.sides[0, 0])).name)
    assert wrong.open_edges == 3
    corners = surface.vertices[surface.triangles[0]]
    np.testing.assert_allclose(np.sort(wrong.where_mm, axis=0), np.sort(corners, axis=0), atol=1e-3)
    assert f"3 open edges; first at ({wrong.where_mm[0][0]:.1f}, " in proof_html(proof)


def test_a_triangle_twice_or_with_one_owner_does_not_conform(patient, surface) -> None:
    twice = with_faces(surface, [*range(len(surface.triangles)), 5, 5])
    assert prove(twice, patient).one_sided == 2
    sides = surface.sides.copy()
    sides[7] = sides[7, 0]
    assert prove(replace(surface, sides=sides), patient).one_sided == 1


def test_a_spike_through_the_other_side_crosses_it(patient, surface) -> None:
    vertices = surface.vertices.copy()
    a, b, c = vertices[surface.triangles[40]]
    normal = np.cross(b - a, c - a)
    vertices[surface.triangles[40, 0]] -= 6 * normal / np.linalg.norm(normal)
    proof = prove(replace(surface, vertices=vertices), patient)
    assert proof.crossings > 0
    assert not proof.holds


def test_a_vertex_pulled_over_the_opposite_edge_turns_triangles(patient, surface) -> None:
    vertices = surface.vertices.copy()
    a, b, c = vertices[surface.triangles[40]]
    vertices[surface.triangles[40, 0]] = 1.5 * (b + c) / 2 - 0.5 * a
    proof = prove(replace(surface, vertices=vertices), patient)
    assert proof.turned > 0
    assert not proof.holds


@pytest.mark.parametrize(
    ("percent", "wall", "lumen"), [(0.3, True, True), (0.9, False, True), (3, False, False)]
)
def test_volumes_may_be_off_by_half_a_percent_or_two_below_a_millilitre(
    patient, surface, percent, wall, lumen
) -> None:
    centre = surface.vertices.mean(axis=0)
    vertices = centre + (1 + percent / 100) ** (1 / 3) * (surface.vertices - centre)
    found = {t.name: t for t in prove(replace(surface, vertices=vertices), patient).tissues}
    assert found["lumen"].voxels_ml < 1 < found["wall"].voxels_ml
    assert found["wall"].volume_error == pytest.approx(percent / 100, rel=1e-3)
    assert (found["wall"].holds, found["lumen"].holds) == (wall, lumen)


def test_other_voxels_have_another_topology(patient, surface) -> None:
    array = patient.array.copy()
    array[9:11, 5, 2:5] = 0  # cuts the lump in two
    proof = prove(surface, replace(patient, array=array))
    (lump,) = (t for t in proof.tissues if t.name == "lump")
    assert (lump.betti, lump.betti_voxels) == ((1, 0, 0), (2, 0, 0))
    assert not lump.holds


def test_where_labels_cross_diagonally_the_proof_says_where() -> None:
    """White noise: tissues touch themselves, and every such place is at a corner of voxels."""
    given = random_map(1, (7, 7, 7))
    proof = prove(surface_of(given), given)
    assert proof.holds
    touching = [t for t in proof.tissues if not t.manifold]
    assert touching
    for tissue in touching:
        places = np.array(tissue.where_mm)
        assert 0 < len(places) <= 20
        assert (np.abs(places - (np.floor(places) + 0.5)) <= 0.45 + 1e-3).all()
    assert any("vertices; first at (" in row[-1] for row in proof_rows(proof))
