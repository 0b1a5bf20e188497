"""What the page shows of a spec is what the command line gives, and files of others go in and out."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
import yaml
from scipy.spatial.transform import Rotation
from typer.testing import CliRunner

from anatomica.anatomy.catalogue import ANATOMIES
from anatomica.anatomy.label_map import LabelMap
from anatomica.anatomy.labels import LabelTable
from anatomica.anatomy.nifti import encode, save
from anatomica.cli import app
from anatomica.data.phantoms import phantom
from anatomica.errors import AnatomicaError
from anatomica.spec.spec import Spec
from anatomica.spec.tasks import TASKS
from anatomica.studio.asks import Ask, Shown, line, shown
from anatomica.studio.markups import Box, read_markups, write_markups
from studio_client import Client

BOX = {
    "family": "box",
    "grid": [24, 24, 24],
    "centre_mm": [10.0, 5.0, -8.0],
    "size_mm": [60.0, 50.0, 40.0],
    "rotation_deg": [20.0, -10.0, 35.0],
}


@pytest.fixture(scope="module")
def patient(client: Client) -> str:
    reply = client.post("/api/phantom", {"anatomy": "cardiac", "seed": 3})
    assert reply.status == 200
    return reply.json["id"]


def _spec(**more: object) -> dict:
    constraint = {"name": "LV in box", "structure": ["LV"], "domain": BOX, "match": [], **more}
    return {"name": "s", "anatomy": "cardiac", "constraints": [constraint]}


def test_a_box_measures_what_the_command_line_measures(client: Client, patient: str, tmp_path: Path) -> None:
    plan = client.post("/api/plan", {"anatomy": "cardiac", "spec": _spec(), "patient": patient}).json
    (tmp_path / "p.nii.gz").write_bytes(client.get(f"/api/patient/{patient}/nifti").data)
    (tmp_path / "s.yaml").write_text(plan["yaml"])
    words = [
        "measure",
        str(tmp_path / "p.nii.gz"),
        "--anatomy",
        "cardiac",
        "--spec",
        str(tmp_path / "s.yaml"),
        "--json",
    ]
    done = CliRunner().invoke(app, words)
    assert done.exit_code == 0, done.output
    theirs = json.loads(done.stdout)["constraints"][0]["domains"][0]
    ours = plan["constraints"][0]["domains"][0]
    assert ours["volume_ml"] == pytest.approx(theirs["volume_ml"], rel=1e-9)
    assert ours["betti"] == theirs["betti"]
    assert ours["achieved"]["centre_mm"] == pytest.approx(theirs["centroid_mm"])
    axes = np.linalg.norm(np.array(ours["achieved"]["axes_mm"]), axis=0)
    assert sorted(axes) == pytest.approx(sorted(theirs["ellipsoid_semi_axes_mm"]), rel=1e-6)


def test_yaml_and_json_are_the_same_spec(client: Client, patient: str) -> None:
    given = {"anatomy": "cardiac", "spec": _spec(target={"volume_ml": 30}), "patient": patient}
    first = client.post("/api/plan", given).json
    second = client.post("/api/plan", {"anatomy": "cardiac", "yaml": first["yaml"], "patient": patient}).json
    assert second["spec"] == first["spec"]
    assert second["yaml"] == first["yaml"]
    assert yaml.safe_load(first["yaml"])["constraints"][0]["target"] == {"volume_ml": 30}
    wrong = client.post("/api/plan", {"anatomy": "cardiac", "yaml": first["yaml"].replace("LV]", "LW]")})
    assert wrong.status == 422
    assert "line" in wrong.json["sentence"]
    assert "LW" in wrong.json["sentence"]


def test_tasks_of_the_paper_can_be_begun_with(client: Client) -> None:
    """Whatever the domain's family, the page's JSON is a spec again, and so is the YAML that it edits."""
    families = set()
    for name in TASKS:
        spec = client.post("/api/task", {"name": name}).json
        families |= {c["domain"]["family"] for c in spec["constraints"]}
        plan = client.post("/api/plan", {"anatomy": spec["anatomy"], "spec": spec})
        assert plan.status == 200, plan.data
        assert plan.json["spec"] == spec
        again = client.post("/api/plan", {"anatomy": spec["anatomy"], "yaml": plan.json["yaml"]}).json
        assert again["spec"] == spec
    assert len(families) > 4


def test_a_target_that_nobody_has_is_said_with_the_nearest(client: Client, patient: str) -> None:
    spec = _spec(target={"volume_ml": 5000})
    spec["constraints"][0]["domain"] = {"family": "global", "grid": [32, 32, 32]}
    plan = client.post("/api/plan", {"anatomy": "cardiac", "spec": spec, "patient": patient}).json
    (compared,) = plan["population"]
    assert compared["outside"]
    assert 50 < compared["nearest"]["volume_ml"] < 1000
    assert "--spec" in plan["command"]
    assert f"--like cardiac-{patient}.nii.gz" in plan["command"]


ASKS = {
    "lv.volume_ml = 140": ("lv.volume_ml", Ask(value=140)),
    "lv.volume_ml = 140 ± 5 %": ("lv.volume_ml", Ask(value=140, tolerance=5)),
    "lv.mass_g = 90..120": ("lv.mass_g", Ask(how="range", value=90, high=120)),
    "pa.diameter_mm <= 30": ("pa.diameter_mm", Ask(how="most", value=30)),
    "pa.diameter_mm >= 20.5": ("pa.diameter_mm", Ask(how="least", value=20.5)),
}


@pytest.mark.parametrize("text", ASKS)
def test_targets_are_lines_of_a_spec_and_back(text: str) -> None:
    about = ANATOMIES["cardiac"]
    key, ask = ASKS[text]
    assert line(key, ask, about) == text
    spec = Spec(name="s", anatomy="cardiac", ask=(text, "rv.volume_ml <= 1.2 * lv.volume_ml"))
    assert shown(spec, about) == Shown({key: ask}, ["rv.volume_ml <= 1.2 * lv.volume_ml"])


def test_asks_go_through_yaml(client: Client) -> None:
    asks = {"lv.volume_ml": {"how": "equal", "value": 140}}
    given = {"anatomy": "cardiac", "asks": asks, "lines": ["lv.mass_g = p90"]}
    plan = client.post("/api/plan", given).json
    assert yaml.safe_load(plan["yaml"])["ask"] == ["lv.volume_ml = 140", "lv.mass_g = p90"]
    again = client.post("/api/plan", {"anatomy": "cardiac", "yaml": plan["yaml"]}).json
    assert again["asks"] == asks
    assert again["lines"] == ["lv.mass_g = p90"]
    assert '--set "lv.volume_ml = 140"' in again["command"]
    wrong = client.post("/api/plan", {"anatomy": "cardiac", "asks": {"lv.volum": asks["lv.volume_ml"]}})
    assert wrong.status == 422
    assert "lv.volume_ml" in wrong.json["sentence"]


def test_boxes_snap_to_tissues_interfaces_and_quantities(client: Client, patient: str) -> None:
    label_map = phantom("cardiac", 3, 64).label_map
    where = np.argwhere(label_map.mask("LV")) @ label_map.affine[:3, :3].T + label_map.affine[:3, 3]

    def snapped(**to: object) -> dict:
        reply = client.post("/api/snap", {"patient": patient, "snap": to})
        assert reply.status == 200, reply.data
        return reply.json

    box = snapped(to="tissue", tissues=["LV"])
    half = float(label_map.spacing_mm[0])
    assert box["centre_mm"] == pytest.approx((where.min(0) + where.max(0)) / 2, abs=half)
    assert box["size_mm"] == pytest.approx(where.max(0) - where.min(0) + half, abs=half)
    valve = snapped(to="interface", tissues=["LV", "LA"])
    annulus = snapped(to="quantity", key="mv.annulus.diameter_mm")
    assert np.linalg.norm(np.subtract(valve["centre_mm"], annulus["centre_mm"])) < 15
    assert annulus["size_mm"][2] < 3 < annulus["size_mm"][0]
    for bad in ({"to": "tissue", "tissues": []}, {"to": "quantity", "key": "lv.nothing"}):
        assert client.post("/api/snap", {"patient": patient, "snap": bad}).status == 422


def test_what_a_box_can_snap_to_is_told(client: Client, patient: str) -> None:
    (about,) = [p for p in client.get("/api/state").json["patients"] if p["id"] == patient]
    contacts = [frozenset(pair) for pair in about["contacts"]]
    assert frozenset(("LV", "Myo")) in contacts
    assert len(contacts) == len(set(contacts))
    assert frozenset(("SVC", "IVC")) not in contacts
    values = client.get(f"/api/patient/{patient}/quantities").json["values"]
    assert values["mv.annulus.diameter_mm"]["place"]
    assert not values["lv.volume_ml"]["place"]
    for key in (key for key, found in values.items() if found["place"]):
        snap = {"patient": patient, "snap": {"to": "quantity", "key": key}}
        assert client.post("/api/snap", snap).status == 200


def test_slicer_s_boxes_come_back_as_they_went() -> None:
    box = Box(name="a", centre_mm=(1, -2, 3), size_mm=(10, 20, 30), rotation_deg=(10, 20, 30))
    written = write_markups([box])
    roi = written["markups"][0]
    assert roi["center"] == [-1, 2, 3]
    # The first axis of the box, seen in LPS.
    first = Rotation.from_euler("xyz", (10, 20, 30), degrees=True).apply([1, 0, 0])
    assert np.array(roi["orientation"]).reshape(3, 3)[:, 0] == pytest.approx(first * [-1, -1, 1])
    (again,) = read_markups(json.loads(json.dumps(written)))
    assert again.centre_mm == box.centre_mm
    assert again.size_mm == box.size_mm
    assert again.rotation_deg == pytest.approx(box.rotation_deg)
    # As 3D Slicer writes a box along the axes.
    plain = {"type": "ROI", "coordinateSystem": "LPS", "center": [1, 2, 3], "size": [4, 5, 6]}
    (straight,) = read_markups({"markups": [plain]})
    R = Rotation.from_euler("xyz", straight.rotation_deg, degrees=True).as_matrix()
    assert np.abs(R) == pytest.approx(np.eye(3), abs=1e-9)
    for bad in ({}, {"markups": []}, {"markups": [{"type": "ROI", "center": [0, 0, 0], "size": [0, 1, 1]}]}):
        with pytest.raises(AnatomicaError):
            read_markups(bad)


def test_an_own_file_is_read_and_a_broken_one_is_a_sentence(client: Client, tmp_path: Path) -> None:
    label_map = phantom("cardiac", 5, 32).label_map
    data = encode(label_map)
    reply = client.send("POST", "/api/upload?anatomy=cardiac&name=../../mine.nii.gz", data)
    assert reply.status == 200, reply.data
    for tissue, volume in reply.json["volumes_ml"].items():
        assert volume == pytest.approx(label_map.volume_ml(tissue), rel=0.1)
    save(label_map, tmp_path / "raw.nii")
    raw = (tmp_path / "raw.nii").read_bytes()
    for broken in (b"", b"garbage", data[: len(data) // 2], raw[:1000], b"\x1f\x8b" + bytes(100)):
        refused = client.send("POST", "/api/upload?anatomy=cardiac", broken)
        assert refused.status == 422
        assert "/tmp" not in refused.json["sentence"]
        assert "the file" in refused.json["sentence"]


def test_unknown_labels_are_asked_for(client: Client) -> None:
    label_map = phantom("cardiac", 5, 32).label_map
    strange = np.where(label_map.mask("LV"), 70, np.where(label_map.mask("RV"), 71, 0)).astype(np.uint8)
    table = LabelTable.from_names({70: "thing", 71: "other thing"})
    data = encode(LabelMap(strange, label_map.affine, table))
    asked = client.send("POST", "/api/upload?anatomy=cardiac", data)
    assert asked.status == 409
    assert [(x["id"], x["name"]) for x in asked.json["labels"]] == [(70, "thing"), (71, "other thing")]
    mapping = "%7B%2270%22%3A%22LV%22%2C%2271%22%3A%22background%22%7D"
    mapped = client.send("POST", f"/api/upload?anatomy=cardiac&mapping={mapping}", data)
    assert mapped.status == 200
    assert set(mapped.json["volumes_ml"]) == {"LV"}
    path = client.send("POST", "/api/upload?anatomy=cardiac&mapping=/etc/passwd", data)
    assert path.status == 422
