"""A full disk, a file that cannot be read and too little memory never cost a patient."""

import errno
import json

import pytest

import trees
from anatomica.anatomy.catalogue import ANATOMIES
from anatomica.data import open_cache
from anatomica.data.cache import Exclusion, record_path, write_record
from anatomica.data.exclusion import NO_RULES
from anatomica.data.prepare import Job, prepare
from anatomica.data.sources import spines
from anatomica.errors import AnatomicaError
from anatomica.files import CannotWriteError
from full_disk import each_full_moment

SPINAL = ANATOMIES["spinal"]


@pytest.fixture(scope="module")
def whole(tmp_path_factory):
    """A data set of four scans, a way to prepare it, and the files that an undisturbed run makes."""
    root = trees.verse(tmp_path_factory.mktemp("data"), count=2)

    def run(folder, workers=1):
        return prepare(spines.verse_items(root, SPINAL), Job(folder, SPINAL, 32, "verse", NO_RULES), workers)

    out = tmp_path_factory.mktemp("whole") / "cache"
    run(out)
    return run, trees.tree_bytes(out)


def test_a_disk_that_is_full_at_any_moment_loses_nobody(whole, tmp_path):
    run, files = whole
    moments = 0
    for out in each_full_moment(run, tmp_path):
        for file in out.rglob("*.json"):
            assert "left on device" not in json.dumps(json.loads(file.read_text()))
        run(out)
        assert trees.tree_bytes(out) == files
        moments += 1
    assert moments > 10


def test_a_disk_that_is_full_in_a_worker_ends_the_run(whole, tmp_path):
    run, files = whole
    out = tmp_path / "cache"
    run(out)
    (out / "records" / "sub-verse000_seg-vert_msk.json").unlink()
    case = out / "cases" / "sub-verse000_seg-vert_msk.nii.gz"
    case.unlink()
    case.mkdir()  # nothing can be renamed onto a folder
    with pytest.raises(CannotWriteError, match=r"sub-verse000_seg-vert_msk\.nii\.gz"):
        run(out, workers=2)
    case.rmdir()
    run(out, workers=2)
    assert trees.tree_bytes(out) == files


@pytest.mark.parametrize(
    ("error", "said"),
    [
        (OSError(errno.EIO, "Input/output error", "scan.nii.gz"), "scan.nii.gz: Input/output error"),
        (MemoryError("Unable to allocate 4.00 TiB"), "not enough memory .Unable to allocate 4.00 TiB"),
    ],
)
def test_what_the_machine_prevents_is_tried_again_and_never_an_exclusion(
    whole, tmp_path, monkeypatch, error, said
):
    run, files = whole
    original, fails = spines._load, [3]

    def load(path, anatomy, vocabulary):
        if "verse001" in path.name and fails[0]:
            fails[0] -= 1
            raise error
        return original(path, anatomy, vocabulary)

    monkeypatch.setattr(spines, "_load", load)
    out = tmp_path / "cache"
    with pytest.raises(AnatomicaError, match=f"1 of 7 cases could not be made, first sub-verse001.*{said}"):
        run(out)
    with pytest.raises(AnatomicaError, match="not finished"):
        open_cache(out)
    assert fails == [1]  # tried twice
    run(out)  # fails once more, and is tried again in the same run
    assert trees.tree_bytes(out) == files


def test_a_case_that_failed_for_an_unknown_reason_is_tried_in_every_run(whole, tmp_path):
    """Caches of earlier versions hold such records of patients whose disk was full."""
    run, files = whole
    out = tmp_path / "cache"
    cache = run(out)
    case = cache.cases[0]
    reason = "failed: OSError: [Errno 28] No space left on device"
    write_record(out, Exclusion(case.id, case.patient, case.source, case.source_sha256, reason))
    assert "Errno 28" in record_path(out, case.id).read_text()
    run(out)
    assert trees.tree_bytes(out) == files
