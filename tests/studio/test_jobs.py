"""Jobs: events of every step, surfaces on the way, cancelling, crashes, the same patients as elsewhere."""

from __future__ import annotations

import json
import os
import signal
import time
from collections.abc import Iterator

import numpy as np
import pytest
import torch
from websockets.sync.client import ClientConnection

from anatomica.anatomy.catalogue import ANATOMIES
from anatomica.anatomy.nifti import encode
from anatomica.data.phantoms import phantom
from anatomica.generation.draw import decode as decode_maps
from anatomica.generation.draw import draw
from anatomica.generation.options import Options
from anatomica.generation.recipe import Arguments
from anatomica.generation.resolve import resolve_for
from anatomica.generation.sample import Progress
from anatomica.measurement.goals import goals_in
from anatomica.prior.sampler import Step
from anatomica.prior.zoo import load_model
from anatomica.spec.asks import ask
from anatomica.spec.spec import Spec
from anatomica.studio.frames import decode
from anatomica.studio.frames import encode as encode_frame
from anatomica.studio.surfaces import joined, patient_frame
from anatomica.studio.worker import Message, Order, Teller, run
from studio_client import Client, wait_for


@pytest.fixture
def socket(client: Client) -> Iterator[ClientConnection]:
    with client.socket() as opened:
        yield opened


def test_frames_come_back_as_they_went() -> None:
    arrays = {
        "labels": np.arange(7, dtype=np.uint8),
        "v": np.random.default_rng(0).normal(size=(3, 3)).astype(np.float32),
        "none": np.zeros((0, 3), np.uint32),
    }
    header, found = decode(encode_frame({"type": "x", "ü": 1}, arrays))
    assert header == {"type": "x", "ü": 1}
    assert set(found) == set(arrays)
    for name, array in arrays.items():
        np.testing.assert_array_equal(found[name], array)
        assert found[name].shape == array.shape
    with pytest.raises(TypeError, match="float64"):
        encode_frame({}, {"x": np.zeros(1)})


def test_a_patient_s_frame_has_its_labels_and_closed_surfaces() -> None:
    label_map = phantom("cardiac", 1, 32).label_map
    header, arrays = decode(patient_frame("p1", label_map))
    table = ANATOMIES["cardiac"].table
    np.testing.assert_array_equal(np.array(table.ids)[arrays["labels"]], label_map.array)
    assert set(header["tissues"]) == set(label_map.present())
    for name in header["tissues"]:
        v, t = arrays[f"fine/{name}/vertices"], arrays[f"fine/{name}/triangles"]
        a, b, c = (v[t[:, k]].astype(np.float64) for k in range(3))
        volume = np.einsum("ij,ij->i", a, np.cross(b, c)).sum() / 6000
        assert volume == pytest.approx(label_map.volume_ml(name), rel=0.02)
        assert len(arrays[f"coarse/{name}/triangles"]) < 0.6 * len(t)


def test_joining_keeps_a_plane_a_plane_and_drops_what_collapses() -> None:
    x, y = (g.ravel() for g in np.meshgrid(np.arange(9.0), np.arange(9.0), indexing="ij"))
    points = np.stack([x, y, np.full(81, 0.3)], 1)
    corner = np.array([i * 9 + j for i in range(8) for j in range(8)])
    triangles = np.concatenate(
        [np.stack([corner, corner + 9, corner + 1], 1), np.stack([corner + 9, corner + 10, corner + 1], 1)]
    )
    means, left = joined(points, triangles, 2.0)
    np.testing.assert_allclose(means[:, 2], 0.3)
    assert len(means) == 25
    assert 0 < len(left) < len(triangles) / 2
    assert (np.sort(left, axis=1)[:, 1:] != np.sort(left, axis=1)[:, :-1]).all()


def test_generate_tells_every_step_and_gives_the_same_patient_as_python(
    client: Client, socket: ClientConnection
) -> None:
    asked = {"anatomy": "coronary", "samples": 1, "seed": 3, "steps": 3, "tries": 1}
    job = client.post("/api/generate", asked).json["job"]
    events, surfaces, patient = [], [], None
    while True:
        message = socket.recv(timeout=90)
        if isinstance(message, bytes):
            surfaces.append(decode(message))
            continue
        event = json.loads(message)
        events.append(event)
        patient = event["patient"] if event["type"] == "patient" else patient
        if event["type"] == "ended":
            break
    assert event == {"type": "ended", "job": job, "state": "done"}
    steps = [e for e in events if e["type"] == "step"]
    assert [e["step"] for e in steps] == list(range(1, steps[0]["steps"] + 1))
    header, arrays = surfaces[0]
    assert (header["type"], header["job"], header["step"]) == ("surface", job, 1)
    assert arrays[f"coarse/{header['tissues'][0]}/vertices"].dtype == np.float32
    assert patient is not None
    assert patient["seed"] == 3
    (sample,) = draw(load_model("coronary"), [3], [], Options(steps=3, tries=1))
    assert client.get(f"/api/patient/{patient['id']}/nifti").data == encode(sample.label_map)
    report = client.get(f"/api/patient/{patient['id']}/recipe").json
    assert report["recipe"]["arguments"]["seed"] == 3
    assert client.get(f"/api/patient/{patient['id']}/report").data.startswith(b"<!")
    assert client.get(f"/api/patient/{patient['id']}/gltf").data[:4] == b"glTF"
    assert client.get(f"/api/patient/{patient['id']}/stl").data[:2] == b"PK"


def test_every_step_tells_every_sample_s_errors_of_quantities() -> None:
    told: list[Message] = []
    spec = Spec(name="volume", anatomy="cardiac", ask=("lv.volume_ml = 150",))
    arguments = Arguments(samples=2, seed=5, options=Options(steps=3, tries=1))
    run(Order("job", "cardiac", spec, arguments=arguments), load_model("cardiac"), told.append)
    steps = [m for m in told if isinstance(m, dict)]
    count = steps[0]["steps"]
    assert [(m["seed"], m["step"]) for m in steps] == [(s, k) for s in (5, 6) for k in range(1, count + 1)]
    assert all([e["constraint"] for e in m["errors"]] == ["lv.volume_ml"] for m in steps)


def test_errors_of_quantities_are_those_of_the_prediction_also_between_surfaces() -> None:
    model, told = load_model("cardiac"), []
    goals = goals_in(resolve_for(model, ask("lv.volume_ml = 150")))
    tell = Teller("job", model, goals, told.append, lambda: False)
    z = 80 * torch.randn(2, *model.latent_shape, generator=torch.Generator().manual_seed(0))
    with torch.inference_mode():
        z = model.denoiser(z, torch.full((2,), 80.0))
    for _ in range(2):
        tell(Progress((5, 6), 0, Step(0, 3, 1.0, z, z), []))
    assert [type(m) for m in told] == [bytes, dict, dict, dict, dict]  # a second surface would be too early
    for m, label_map in zip(told[1:], decode_maps(model, z, 32) * 2, strict=True):
        off = abs(label_map.volume_ml("LV") - 150)
        assert m["errors"][0]["error"] == pytest.approx(off, rel=1e-6)
        assert m["errors"][0]["in_tolerances"] == pytest.approx(off / (0.02 * 150), rel=1e-6)


def test_cancel_ends_a_job_at_its_next_step(client: Client, socket: ClientConnection) -> None:
    asked = {"anatomy": "coronary", "samples": 4, "steps": 1000}
    job = client.post("/api/generate", asked).json["job"]
    waiting = client.post("/api/generate", asked).json["job"]
    wait_for(socket, type="step", job=job)
    assert client.post("/api/cancel", {"name": waiting}).json == {"cancelled": True}
    wait_for(socket, type="ended", job=waiting, state="cancelled")
    begun = time.monotonic()
    assert client.post("/api/cancel", {"name": job}).json == {"cancelled": True}
    wait_for(socket, type="ended", job=job, state="cancelled")
    assert time.monotonic() - begun < 30
    assert client.post("/api/cancel", {"name": job}).json == {"cancelled": False}


def test_a_crash_of_the_worker_is_a_sentence_and_the_next_job_runs(
    client: Client, socket: ClientConnection
) -> None:
    import multiprocessing

    asked = {"anatomy": "coronary", "samples": 1, "steps": 1000}
    job = client.post("/api/generate", asked).json["job"]
    wait_for(socket, type="step", job=job)
    (worker,) = (p for p in multiprocessing.active_children() if p.name == "anatomica-studio-worker")
    assert worker.pid is not None
    os.kill(worker.pid, signal.SIGKILL)
    ended = wait_for(socket, type="ended", job=job)
    assert ended["state"] == "failed"
    assert "started again" in ended["sentence"]
    again = client.post("/api/generate", asked | {"steps": 2, "tries": 1}).json["job"]
    assert wait_for(socket, type="ended", job=again)["state"] == "done"


def test_a_job_that_cannot_work_says_why(client: Client, socket: ClientConnection) -> None:
    box = {"family": "box", "grid": [8, 8, 8], "centre_mm": [0, 0, 0], "size_mm": [1, 1, 1]}
    free = {"name": "b", "structure": ["Lu"], "domain": box, "match": [], "target": {}}
    spec = {"name": "s", "anatomy": "coronary", "constraints": [free]}
    job = client.post("/api/generate", {"anatomy": "coronary", "spec": spec}).json["job"]
    ended = wait_for(socket, type="ended", job=job)
    assert ended["state"] == "failed"
    assert "has no target" in ended["sentence"]
