"""Importers on trees in the data sets' own layouts: right tissues, right frame, right reasons, resumable."""

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest

import trees
from anatomica.anatomy import nifti
from anatomica.anatomy.catalogue import ANATOMIES
from anatomica.anatomy.label_map import LabelMap
from anatomica.data import open_cache, split_of
from anatomica.data.cache import Split
from anatomica.data.dataset import LabelMapDataset
from anatomica.data.exclusion import NO_RULES, Rules, touches_border
from anatomica.data.phantoms import phantom
from anatomica.data.prepare import Job, prepare
from anatomica.data.sources import disrupt_cad, generic, spines, totalsegmentator
from anatomica.errors import AnatomicaError

CARDIAC, AORTIC, SPINAL, CORONARY = (ANATOMIES[a] for a in ("cardiac", "aortic", "spinal", "coronary"))


@pytest.fixture(scope="module")
def hearts(tmp_path_factory):
    root = trees.totalsegmentator(tmp_path_factory.mktemp("totalsegmentator"))
    out = tmp_path_factory.mktemp("cache") / "hearts"
    items = totalsegmentator.items(root, CARDIAC)
    return root, prepare(items, Job(out, CARDIAC, 32, "totalsegmentator", Rules()))


def test_totalsegmentator_cardiac(hearts):
    _, cache = hearts
    assert [c.id for c in cache.cases] == [f"s000{i}" for i in range(5)]
    for seed, case in enumerate(cache.cases):
        truth = trees.balls("cardiac", trees.HEART, seed=seed)
        assert case.present == CARDIAC.table.tissues
        assert case.split == split_of(case.patient)
        cube = cache.load(case)
        np.testing.assert_allclose(cube.spacing_mm, 8.0)
        for tissue in ("LV", "RV", "Myo", "LA", "RA", "Ao"):
            assert cube.volume_ml(tissue) == pytest.approx(truth.volume_ml(tissue), rel=0.05)
            assert case.volumes_ml[tissue] == pytest.approx(cube.volume_ml(tissue), rel=1e-6)
            here, there = ((x.affine @ [*np.argwhere(x.mask(tissue)).mean(0), 1])[:3] for x in (cube, truth))
            np.testing.assert_allclose(here, there, atol=3.0)  # voxels are 8 mm


def test_each_bad_subject_is_left_out_for_its_reason(hearts):
    root, cache = hearts
    reasons = {e.id: e.reason for e in cache.excluded}
    assert sorted(reasons) == ["s0010", "s0011", "s0012", "s0013", "s0014", "s0015"]
    assert "no heart chambers; run TotalSegmentator --task heartchambers_highres" in reasons["s0010"]
    assert reasons["s0011"].startswith("unreadable: ")
    assert "heart_atrium_left.nii.gz: not a readable NIfTI" in reasons["s0011"]
    assert reasons["s0012"] == "missing: IVC"
    assert reasons["s0013"] == "border: LV cut by the edge of the scan"
    assert reasons["s0014"].startswith("volume: SVC has 11")
    assert "none of the cardiac structures" in reasons["s0015"]
    assert not any(str(root) in r for r in reasons.values())  # no machine's folders in a manifest


def test_each_rule_can_be_switched_off(hearts, tmp_path):
    root, _ = hearts
    items = [i for i in totalsegmentator.items(root, CARDIAC) if i.id in ("s0012", "s0013", "s0014")]
    for rules, kept in (
        (Rules(missing=False), ["s0012"]),
        (Rules(border=False), ["s0013"]),
        (Rules(volume=False), ["s0014"]),
        (NO_RULES, ["s0012", "s0013", "s0014"]),
    ):
        cache = prepare(items, Job(tmp_path / str(kept), CARDIAC, 16, "totalsegmentator", rules))
        assert [c.id for c in cache.cases] == kept


def test_only_the_largest_piece_is_kept_but_of_pulmonary_veins():
    heart = trees.balls("cardiac", trees.HEART)
    array = heart.array.copy()
    array[1:3, 1:3, 1:3] = CARDIAC.table.id_of("LV")
    array[1:3, 1:3, 50:52] = CARDIAC.table.id_of("PV")
    array[5, 5, 5] = array[6, 6, 6] = CARDIAC.table.id_of("LA")
    specked = LabelMap(array, heart.affine, heart.table)
    clean = totalsegmentator.largest_components(specked, CARDIAC.several_pieces)
    assert clean.volume_ml("LV") == heart.volume_ml("LV")
    assert clean.volume_ml("LA") == heart.volume_ml("LA")
    assert clean.volume_ml("PV") > heart.volume_ml("PV")


def test_totalsegmentator_aortic(tmp_path):
    root = trees.aortas(tmp_path / "data")
    cache = prepare(
        totalsegmentator.items(root, AORTIC), Job(tmp_path / "out", AORTIC, 64, "totalsegmentator", Rules())
    )
    assert [c.present for c in cache.cases] == [AORTIC.table.tissues] * 3
    with pytest.raises(AnatomicaError, match="none of TotalSegmentator's structures is a tissue of coronary"):
        totalsegmentator.items(root, CORONARY)


def test_verse(tmp_path):
    root = trees.verse(tmp_path / "data")
    cache = prepare(spines.verse_items(root, SPINAL), Job(tmp_path / "out", SPINAL, 64, "verse", Rules()))
    assert [c.present for c in cache.cases] == [("L2", "L3", "L4")] * 4
    twice = [c for c in cache.cases if c.patient == "verse401"]
    assert len(twice) == 2
    assert twice[0].split == twice[1].split
    reasons = {e.patient: e.reason for e in cache.excluded}
    assert reasons["gl003"] == "missing: 2 tissues, at least 3 are needed"  # L3 was an L6: background
    assert "does not know the labels 99" in reasons["verse900"]
    assert "not a readable NIfTI" in reasons["verse901"]
    truth = nifti.load(trees.REAL_SPINE, SPINAL, "verse")
    first = cache.load(cache.cases[0])
    assert first.volume_ml("L3") == pytest.approx(truth.volume_ml("L3"), rel=0.01)


def test_ctspine1k(tmp_path):
    root = trees.ctspine1k(tmp_path / "data")
    items = spines.ctspine1k_items(root, SPINAL)
    cache = prepare(items, Job(tmp_path / "out", SPINAL, 64, "ctspine1k", Rules()))
    assert sorted(c.patient for c in cache.cases) == ["1.3.6.1.4.1.9328.50.4.0001", "HN_P001", "liver_12"]
    assert [e.patient for e in cache.excluded] == ["volume-covid19-A-0011_ct"]
    assert "any tissue does not occur" in cache.excluded[0].reason
    with pytest.raises(AnatomicaError, match="vertebrae, not tissues of aortic"):
        spines.ctspine1k_items(root, AORTIC)


def test_disrupt_cad(tmp_path):
    root = trees.pullbacks(tmp_path / "data")
    cache = prepare(
        disrupt_cad.items(root, CORONARY), Job(tmp_path / "out", CORONARY, 32, "disrupt-cad", Rules())
    )
    assert [c.id for c in cache.cases] == [
        "P000_pre_crop0",
        "P000_pre_crop1",
        "P000_pre_crop2",
        "P001_pre_crop0",
    ]
    assert {c.patient for c in cache.cases} == {"P000", "P001"}
    arrays = [cache.load(c).array for c in cache.cases]
    assert not np.array_equal(arrays[0], arrays[1])
    reasons = [e.reason for e in cache.excluded]
    assert sum("60 frames hold 0 different windows of 86 (12.8 mm)" in r for r in reasons) == 3
    assert sum("86 frames hold 1 different windows of 86" in r for r in reasons) == 2
    assert sum("not a readable NIfTI" in r for r in reasons) == 3


@pytest.mark.parametrize("frame_mm", [0.1, 0.15, 0.2])
def test_a_pullback_keeps_its_size_in_mm(tmp_path, frame_mm):
    """Training and generation take every coronary case for a cube of 12.8 mm, so it must be one."""
    root = trees.pullbacks(tmp_path / "data", (140,), frame_mm)
    items = disrupt_cad.items(root, CORONARY, crops=1)
    cache = prepare(items, Job(tmp_path / "out", CORONARY, 64, "disrupt-cad", Rules()))
    cube = cache.load(cache.cases[0])
    np.testing.assert_allclose(cube.spacing_mm, CORONARY.edge_mm / 64)
    source = nifti.load(root / "P000" / "pre.nii.gz", CORONARY)
    area_mm2 = source.mask("Lu")[:, :, 0].sum() * 0.2**2
    assert cube.volume_ml("Lu") == pytest.approx(area_mm2 * CORONARY.edge_mm / 1000, rel=0.02)


def test_frames_of_a_tenth_of_a_millimetre_are_kept_one_by_one(tmp_path):
    root = trees.pullbacks(tmp_path / "data", (140,), frame_mm=0.1)
    items = disrupt_cad.items(root, CORONARY, crops=1)
    cache = prepare(items, Job(tmp_path / "out", CORONARY, 128, "disrupt-cad", Rules()))
    start = disrupt_cad.window_starts("P000_pre", 140, 128, 1)[0]
    cube = cache.load(cache.cases[0])
    assert cube.affine[2, 3] == pytest.approx(start * 0.1)
    window = nifti.load(root / "P000" / "pre.nii.gz", CORONARY).array[:, :, start : start + 128]
    # The deposit's interruptions lie in the same frames as in the source.
    np.testing.assert_array_equal((cube.array == 2).any((0, 1)), (window == 2).any((0, 1)))


def test_a_pullback_without_millimetres_is_left_out(tmp_path):
    root = trees.pullbacks(tmp_path / "data", (140,), frame_mm=1.0)
    items = disrupt_cad.items(root, CORONARY, crops=1)[:1]
    cache = prepare(items, Job(tmp_path / "out", CORONARY, 32, "disrupt-cad", NO_RULES))
    assert "voxels of 0.2 x 0.2 x 1 mm are not optical coherence tomography" in cache.excluded[0].reason


def test_windows_are_random_and_repeatable():
    starts = disrupt_cad.window_starts("P7", 400, 128, 50)
    assert starts == disrupt_cad.window_starts("P7", 400, 128, 50)
    assert starts[:3] == disrupt_cad.window_starts("P7", 400, 128, 3)
    assert len(set(starts)) == 50
    assert min(starts) >= 0
    assert max(starts) <= 272
    assert starts != disrupt_cad.window_starts("P8", 400, 128, 50)


def test_generic_with_a_mapping_and_patients(tmp_path):
    root = tmp_path / "data"
    for patient in ("anna", "ben"):
        for visit in (1, 2):
            heart = trees.balls("cardiac", trees.HEART, seed=visit)
            trees.write(
                root / patient / f"visit{visit}.nii.gz", heart.array + 20 * (heart.array > 0), heart.affine
            )
    mapping: dict[str | int, str] = {i + 20: name for i, name in enumerate(CARDIAC.table.names) if i}
    items = generic.items(root, CARDIAC, mapping, r"^([^/]+)/")
    cache = prepare(items, Job(tmp_path / "out", CARDIAC, 32, "generic", Rules()))
    assert [(c.id, c.patient) for c in cache.cases] == [
        ("anna_visit1", "anna"), ("anna_visit2", "anna"), ("ben_visit1", "ben"), ("ben_visit2", "ben"),
    ]  # fmt: skip
    assert cache.cases[0].present == CARDIAC.table.tissues
    with pytest.raises(AnatomicaError, match="does not match 'anna/visit1"):
        generic.items(root, CARDIAC, mapping, "carl")
    with pytest.raises(AnatomicaError, match="not a regular expression"):
        generic.items(root, CARDIAC, mapping, "(")


@pytest.mark.parametrize(
    ("source", "anatomy"),
    [
        (totalsegmentator.items, AORTIC),
        (spines.verse_items, SPINAL),
        (spines.ctspine1k_items, SPINAL),
        (disrupt_cad.items, CORONARY),
        (generic.items, CARDIAC),
    ],
)
def test_a_root_without_data_says_what_was_expected(tmp_path, source, anatomy):
    with pytest.raises(AnatomicaError, match="no "):
        source(tmp_path, anatomy)


def test_workers_resume_growth_and_change_give_the_same_bytes(tmp_path):
    root = trees.verse(tmp_path / "data", count=3)
    job = Job(tmp_path / "one", SPINAL, 32, "verse", Rules())
    prepare(spines.verse_items(root, SPINAL), job, workers=1)
    one = trees.tree_bytes(tmp_path / "one")
    prepare(spines.verse_items(root, SPINAL), Job(tmp_path / "two", SPINAL, 32, "verse", Rules()), workers=2)
    assert trees.tree_bytes(tmp_path / "two") == one

    made = {p: p.stat().st_mtime_ns for p in (tmp_path / "one" / "cases").iterdir()}
    prepare(spines.verse_items(root, SPINAL), job)
    assert {p: p.stat().st_mtime_ns for p in (tmp_path / "one" / "cases").iterdir()} == made  # nothing redone

    trees._verse(root, "sub-verse777", "", trees.spine(1))  # one more patient, one changed, one gone
    trees._verse(root, "sub-verse000", "", trees.spine(6))
    (root / "derivatives" / "sub-verse001" / "sub-verse001_seg-vert_msk.nii.gz").unlink()
    (tmp_path / "one" / "cases" / ".x.nii.gz.123.tmp").write_bytes(b"left by a kill")
    prepare(spines.verse_items(root, SPINAL), job)
    prepare(spines.verse_items(root, SPINAL), Job(tmp_path / "fresh", SPINAL, 32, "verse", Rules()))
    assert trees.tree_bytes(tmp_path / "one") == trees.tree_bytes(tmp_path / "fresh")


def test_a_cache_of_other_settings_is_not_overwritten(tmp_path):
    root = trees.verse(tmp_path / "data")
    items = spines.verse_items(root, SPINAL)[:1]
    prepare(items, Job(tmp_path / "out", SPINAL, 32, "verse", Rules()))
    with pytest.raises(AnatomicaError, match="made with n=32"):
        prepare(items, Job(tmp_path / "out", SPINAL, 64, "verse", Rules()))


@pytest.mark.parametrize("content", ["{", "[]", '{"editor.tabSize": 4}'])
def test_a_folder_with_settings_of_something_else_is_left_alone(tmp_path, content):
    (tmp_path / "out").mkdir()
    (tmp_path / "out" / "settings.json").write_text(content)
    before = trees.tree_bytes(tmp_path / "out")
    items = spines.verse_items(trees.verse(tmp_path / "data"), SPINAL)[:1]
    with pytest.raises(AnatomicaError, match=r"does not hold the settings of a cache"):
        prepare(items, Job(tmp_path / "out", SPINAL, 32, "verse", Rules()))
    assert trees.tree_bytes(tmp_path / "out") == before


def test_only_files_of_the_cache_are_ever_deleted(tmp_path):
    """A source that vanished takes its case along; notes, folders and temporary files of others stay."""
    items = spines.verse_items(trees.verse(tmp_path / "data"), SPINAL)
    job = Job(tmp_path / "out", SPINAL, 32, "verse", NO_RULES)
    gone = next(i for i in items if i.id == "sub-verse001_seg-vert_msk")
    prepare(items, job)
    kept = [
        job.folder / "cases" / "notes.txt",
        job.folder / "cases" / "mine.nii.gz",
        job.folder / "records" / "old" / "a.json",
        job.folder / "elsewhere" / ".x.json.123.tmp",
        job.folder / ".mine.tmp",
    ]
    unfinished = job.folder / "records" / ".a.json.123.tmp"
    for path in (*kept, unfinished):
        path.parent.mkdir(exist_ok=True)
        path.write_text("mine")
    prepare([i for i in items if i is not gone], job)
    assert all(path.read_text() == "mine" for path in kept)
    assert not unfinished.exists()
    assert not list(job.folder.rglob(f"{gone.id}.*"))


def test_a_surprise_in_one_file_costs_that_file_alone(tmp_path, monkeypatch):
    root = trees.verse(tmp_path / "data")

    def surprise(path, anatomy, vocabulary):
        if "verse001" in path.name:
            raise ZeroDivisionError("who knows")
        return original(path, anatomy, vocabulary)

    original = spines._load
    monkeypatch.setattr(spines, "_load", surprise)
    cache = prepare(spines.verse_items(root, SPINAL), Job(tmp_path / "out", SPINAL, 32, "verse", NO_RULES))
    assert {e.patient: e.reason for e in cache.excluded}["verse001"] == "failed: ZeroDivisionError: who knows"


def test_two_files_of_one_name_are_refused(tmp_path):
    items = spines.verse_items(trees.verse(tmp_path / "data"), SPINAL)
    with pytest.raises(AnatomicaError, match="same case"):
        prepare([*items, items[0]], Job(tmp_path / "out", SPINAL, 32, "verse"))
    with pytest.raises(AnatomicaError, match="no case of verse"):
        prepare([], Job(tmp_path / "out", SPINAL, 32, "verse"))


RUN = """
import sys, typer
from anatomica.cli.prepare import register
app = typer.Typer()
register(app)
app(["prepare", "verse", "--root", sys.argv[1], "--out", sys.argv[2], "-n", "48", "-j", sys.argv[3]])
"""


@pytest.mark.parametrize(("workers", "kills"), [("1", (1, 5)), ("2", (4,))])
def test_killed_in_the_middle_and_run_again_gives_the_same_bytes(tmp_path, workers, kills):
    root = trees.verse(tmp_path / "data", count=6)
    prepare(spines.verse_items(root, SPINAL), Job(tmp_path / "whole", SPINAL, 48, "verse", Rules()))
    out = tmp_path / "killed"
    script = tmp_path / "run.py"
    script.write_text(
        f"if __name__ == '__main__':\n{''.join('    ' + r for r in RUN.splitlines(True) if r.strip())}"
    )
    source = str(Path(nifti.__file__).parents[1])
    env = {**os.environ, "PYTHONPATH": source}
    arguments = [sys.executable, str(script), str(root), str(out), workers]
    for enough in kills:
        process = subprocess.Popen(arguments, env=env, stderr=subprocess.DEVNULL, stdout=subprocess.DEVNULL)
        deadline = time.monotonic() + 60
        while len(list((out / "records").glob("[!.]*"))) < enough and time.monotonic() < deadline:
            time.sleep(0.002)
        process.send_signal(signal.SIGKILL)
        process.wait()
        assert not (out / "manifest.json").exists()
        with pytest.raises(AnatomicaError, match="not finished"):
            open_cache(out)
        for record in (out / "records").glob("[!.]*"):
            json.loads(record.read_text())  # whole, or not there
    assert subprocess.run(arguments, env=env, capture_output=True).returncode == 0
    assert trees.tree_bytes(out) == trees.tree_bytes(tmp_path / "whole")


def test_training_reads_imported_cases(hearts):
    _, cache = hearts
    splits: tuple[Split, ...] = ("train", "validation")
    sizes: dict[Split, int] = {s: len(cache.split(s)) for s in splits}
    split = max(sizes, key=lambda s: sizes[s])
    data = LabelMapDataset(cache.folder, split)
    assert data.load_all().shape == (sizes[split], 32, 32, 32)


def test_a_phantom_survives_the_way_through_a_data_set(tmp_path):
    made = phantom("cardiac", 1, 64).label_map
    trees.write_masks(tmp_path / "data" / "s0000" / "segmentations", made, made.present())
    items = totalsegmentator.items(tmp_path / "data", CARDIAC)
    cache = prepare(items, Job(tmp_path / "out", CARDIAC, 64, "totalsegmentator", NO_RULES))
    again = cache.load(cache.cases[0])
    # The masks fill the frame's cube, so it is kept: the same voxels, but for pieces cut off by the cube.
    np.testing.assert_allclose(again.affine, made.affine)
    assert (again.array == made.array).mean() > 0.999


def test_touching_the_border():
    mask = np.zeros((4, 4, 4), bool)
    mask[1:3, 1:3, 1:3] = True
    assert not touches_border(mask)
    mask[1, 1, 3] = True
    assert touches_border(mask)
    assert not touches_border(mask, (0, 1))
