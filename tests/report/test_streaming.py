"""A report of many samples: everything is on the disk, and little of it in memory."""

import gc
import json
import tracemalloc
from contextlib import closing
from dataclasses import replace

import numpy as np
import pytest
import torch
from PIL import Image

from anatomica.anatomy.catalogue import ANATOMIES
from anatomica.anatomy.label_map import LabelMap, cube_affine
from anatomica.files import CannotWriteError, Spool, write_atomic
from anatomica.generation.sample import Sample
from anatomica.measurement.certificate import Check
from anatomica.report import write
from anatomica.report.write import Report

ABOUT = ANATOMIES["coronary"]


def sample(seed: int, met: bool = True) -> Sample:
    array = np.zeros((32, 32, 32), np.uint8)
    array[8:16, 8:16, 8 : 9 + seed % 20] = ABOUT.table.ids[1]
    check = Check("wall", 0, 1, "volume", "mL", 1.0, 1.0, 0.0, 2.0, "%", met)
    return Sample(
        seed=seed,
        label_map=LabelMap(array, cube_affine(ABOUT.edge_mm, 32), ABOUT.table),
        latent=torch.zeros(3, 4, 4, 4),
        seconds=1.0,
        drawn=2,
        drawn_seed=seed,
        checks=(check,),
    )


RECIPE = {"spec": None, "model": {"anatomy": "coronary"}}


def written(tmp_path, monkeypatch, samples, **bounds) -> dict:
    for name, value in bounds.items():
        monkeypatch.setattr(write, name, value)
    with closing(Report(tmp_path, None, (), ABOUT)) as report:
        for s in samples:
            report.add(s)
        report.write(RECIPE)
    return json.loads((tmp_path / "report.json").read_text())


def test_every_sample_is_in_the_json_and_the_first_on_the_page(tmp_path, monkeypatch) -> None:
    samples = [sample(i, met=i != 3) for i in range(6)]
    data = written(tmp_path, monkeypatch, samples, MOST_PICTURES=2, MOST_LISTED=4)
    assert [s["seed"] for s in data["samples"]] == list(range(6))
    assert (data["met"], data["valid"]) == (5, 5)
    voxel = (ABOUT.edge_mm / 32) ** 3 / 1000
    assert data["samples"][2]["volumes_ml"] == {ABOUT.table.tissues[0]: pytest.approx(64 * 3 * voxel)}
    page = (tmp_path / "report.html").read_text()
    assert "6 samples." in page
    assert "Pictures of the first 2 of 6 samples" in page
    assert sorted(p.name for p in tmp_path.glob("sample-*.png")) == ["sample-000000.png", "sample-000001.png"]
    with Image.open(tmp_path / "contact-sheet.png") as sheet:
        assert sheet.size == (2 * 240, 260)
    assert not list(tmp_path.glob(".*"))


def test_a_sample_that_is_added_again_takes_its_own_place(tmp_path, monkeypatch) -> None:
    """Ctrl-C while it was added: it is added once more."""
    data = written(tmp_path, monkeypatch, [sample(0), sample(1, met=False), sample(1), sample(2)])
    assert [s["seed"] for s in data["samples"]] == [0, 1, 2]
    assert data["met"] == 3


def test_memory_does_not_grow_with_the_samples(tmp_path, monkeypatch) -> None:
    """400 label maps are 13 MB, their checks and curves more; what stays of one is below 2 kB."""
    monkeypatch.setattr(write, "MOST_PICTURES", 1)
    monkeypatch.setattr(write, "MOST_LISTED", 10)
    report = Report(tmp_path, None, (), ABOUT)
    long = "x" * 10_000
    tracemalloc.start()
    try:
        for i in range(10):
            report.add(sample(i))
        gc.collect()
        before, _ = tracemalloc.get_traced_memory()
        for i in range(10, 410):
            s = sample(i)
            report.add(replace(s, checks=(replace(s.checks[0], note=long + str(i)),)))
        gc.collect()
        after, _ = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    report.close()
    assert (after - before) / 400 < 2000


def test_a_spool_goes_on_after_a_piece_that_could_not_be_written(tmp_path) -> None:
    spool = Spool(tmp_path)
    first = spool.put(b"one")

    class Full:
        def __init__(self, file):
            self.file = file

        def __getattr__(self, name):
            return getattr(self.file, name)

        def write(self, data):
            self.file.write(data[:1])
            raise OSError(28, "No space left on device")

    good, spool._file = spool._file, Full(spool._file)  # type: ignore[assignment]
    with pytest.raises(CannotWriteError, match="No space left"):
        spool.put(b"two")
    spool._file = good
    second = spool.put(b"three")
    assert (spool.get(first), spool.get(second)) == (b"one", b"three")
    spool.close()
    assert not list(tmp_path.iterdir())


def test_a_file_written_in_pieces_is_whole_or_not_there(tmp_path) -> None:
    path = tmp_path / "a.txt"
    write_atomic(path, (piece for piece in (b"one ", b"two")))
    assert path.read_bytes() == b"one two"

    def broken():
        yield b"thr"
        raise OSError(28, "No space left on device")

    with pytest.raises(CannotWriteError, match="No space left"):
        write_atomic(path, broken())
    assert path.read_bytes() == b"one two"
    assert [p.name for p in tmp_path.iterdir()] == ["a.txt"]
