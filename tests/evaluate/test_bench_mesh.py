"""The benchmarks of meshes run on small inputs and see what is wrong with a mesh."""

import json

from rich.console import RenderableType

from anatomica.data.phantoms import phantom
from anatomica.evaluate.bench import mesh, mesh_proof
from anatomica.generation.draw import draw
from anatomica.mesh import prove, surface_of
from tiny_prior import save_tiny_model


def test_rivals_in_one_run(tmp_path) -> None:
    result = mesh.run(tmp_path, ("coronary",), n=32, rounds=1)
    rows = result["anatomies"]["coronary"]
    assert len(rows) == 4
    assert rows["anatomica"]["worst_volume_error"] < 1e-3
    assert rows["anatomica"]["open_edges"] == 0
    assert rows["anatomica"]["tissues_with_right_betti"] == rows["anatomica"]["tissues"]
    # Marching cubes at half height is the same shape but for its cut corners.
    assert 0.001 < rows["marching cubes per tissue"]["worst_volume_error"] < 0.5
    assert all(row["triangles"] > 500 for row in rows.values())
    assert json.loads((tmp_path / "mesh.json").read_text()) == result
    assert (tmp_path / "mesh.md").read_text().count("| coronary |") == 4


def test_quality_sees_a_hole_and_a_lost_tissue() -> None:
    label_map = phantom("coronary", 0, 32).label_map
    parts = mesh.ours(label_map)
    name = label_map.present()[0]
    hole = parts | {name: mesh.Part(parts[name].vertices, parts[name].triangles[1:])}
    found = mesh.quality(hole, label_map)
    assert (found["open_edges"], found["tissues_with_open_edges"]) == (3, 1)
    assert found["tissues_with_right_betti"] == found["tissues"] - 1
    del parts[name]
    assert mesh.quality(parts, label_map)["worst_volume_error"] == 1.0


def test_counts_of_proofs_go_on_where_they_were(tmp_path, monkeypatch) -> None:
    lines: list[RenderableType] = []
    model, cache = str(save_tiny_model(tmp_path / "model")), tmp_path / "cache"
    mesh_proof.run(tmp_path, (model,), samples=1, n=16, cache=cache)
    drawn = []

    def counted(model, seeds, **more):
        drawn.extend(seeds)
        return draw(model, seeds, **more)

    monkeypatch.setattr(mesh_proof, "draw", counted)
    result = mesh_proof.run(tmp_path, (model,), samples=3, n=16, cache=cache, tell=lines.append)
    assert drawn == [1, 2]
    for way in mesh_proof.WAYS:
        row = result["surfaces"]["coronary"][way]
        assert row["samples"] == row["holds"] == row["closed"] == row["betti"] == row["two_owners"] == 3
        assert (row["turned"], row["crossings"], row["failed"]) == (0, 0, {})
        assert all(t["samples"] <= 3 and t["worst_error"] < 0.005 for t in row["tissues"].values())
    assert len(lines) == 2
    assert json.loads((tmp_path / "mesh-proof.json").read_text()) == result
    assert (tmp_path / "mesh-proof.md").read_text().count("3 of 3") >= 8
    # A damaged entry is made again, and gives the same.
    entry = next((cache / "coronary").glob("field-000001-*"))
    entry.write_text(entry.read_text()[:-9])
    again = mesh_proof.run(tmp_path, (model,), samples=3, n=16, cache=cache)
    assert drawn == [1, 2, 1]
    assert (
        again["surfaces"]["coronary"]["field"]["tissues"]
        == result["surfaces"]["coronary"]["field"]["tissues"]
    )


def test_anatomies_of_an_earlier_run_stay_with_their_commit(tmp_path) -> None:
    model, cache = str(save_tiny_model(tmp_path / "model")), tmp_path / "cache"
    result = mesh_proof.run(tmp_path, (model,), samples=1, n=16, cache=cache)
    (own,) = result["surfaces"]
    written = (tmp_path / "mesh-proof.json").read_text().replace(own, "other")
    before = json.loads(written) | {"commits": {"other": "0ld"}}
    (tmp_path / "mesh-proof.json").write_text(json.dumps(before))
    joined = mesh_proof.run(tmp_path, (model,), samples=1, n=16, cache=cache)
    assert set(joined["surfaces"]) == set(joined["provenance"]["weights"]) == {own, "other"}
    assert joined["surfaces"]["other"] == before["surfaces"]["other"]
    assert "Not all are of one commit: other 0ld, " in (tmp_path / "mesh-proof.md").read_text()
    # A run with other numbers has nothing to do with it.
    assert set(mesh_proof.run(tmp_path, (model,), samples=2, n=16, cache=cache)["surfaces"]) == {own}


def test_filled_patients_are_counted_and_kept(tmp_path, monkeypatch) -> None:
    model, cache = str(save_tiny_model(tmp_path / "model")), tmp_path / "cache"
    row = {"layers": [{"volume_error": 0.001, "strays": 0}], "tetrahedra": 7, "holds": True, "seconds": 60.0}
    row |= {"inverted": 0, "missing_faces": 0, "smallest_dihedral_deg": 9.0, "flat_share": 0.0}
    row |= {"cpu_seconds": 50.0, "peak_mb": 99.0}
    filled = []
    monkeypatch.setattr(mesh_proof, "fill_one", lambda surface: filled.append(surface) or dict(row))
    first, result = (mesh_proof.run(tmp_path, (model,), 1, 16, fill=2, cache=cache) for _ in range(2))
    assert first == result
    assert len(filled) == 2
    assert [x["seed"] for x in result["filled"]["coronary"]] == [0, 1]
    assert "| coronary | 1 | 1 | 7 | 0 | 0 | 0 | 0.100 % |" in (tmp_path / "mesh-proof.md").read_text()


def test_reasons_name_what_does_not_hold() -> None:
    label_map = phantom("coronary", 0, 32).label_map
    surface = surface_of(label_map)
    moved = label_map.array.copy()
    moved[:16] = 0  # half of every tissue
    other = type(label_map)(moved, label_map.affine, label_map.table)
    proof = prove(surface, other)
    assert not proof.holds
    assert "% off its" in mesh_proof.reasons(proof)
    assert mesh_proof.reasons(prove(surface, label_map)) == ""
