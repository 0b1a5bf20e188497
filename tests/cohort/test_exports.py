"""Exports: consecutive labels, split by patient, files that other programs read."""

from __future__ import annotations

import importlib
import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import nibabel as nib
import numpy as np
import pytest
from fake_patients import fake_patient, open_fake, planned

from anatomica.anatomy.label_map import LabelMap
from anatomica.cohort.exports import export
from anatomica.cohort.exports.synth import synthetic_image
from anatomica.cohort.summary import Cohort, read_cohort
from anatomica.cohort.worker import Job, Worker
from anatomica.errors import AnatomicaError


@pytest.fixture(scope="module")
def cohort(tmp_path_factory: pytest.TempPathFactory) -> Cohort:
    folder = tmp_path_factory.mktemp("cohort")
    planned(folder, size=10)
    worker = Worker(Job(folder, open_fake))
    for index in range(10):
        worker.one(index)
    return read_cohort(folder)


def volume(path: Path) -> np.ndarray:
    return np.asarray(nib.load(path).dataobj)  # type: ignore[attr-defined]


def test_nnunet(cohort: Cohort, tmp_path: Path) -> None:
    (folder,) = export(cohort, ["nnunet"], tmp_path, images=True)
    about = json.loads((folder / "dataset.json").read_text())
    assert about["labels"]["background"] == 0
    assert sorted(about["labels"].values()) == list(range(len(about["labels"])))
    training = sorted((folder / "labelsTr").iterdir())
    test = sorted((folder / "labelsTs").iterdir())
    assert len(training) == about["numTraining"]
    assert len(training) + len(test) == 10
    assert {p.name for p in training}.isdisjoint(p.name for p in test)
    for path in training:
        image = folder / "imagesTr" / path.name.replace(".nii.gz", "_0000.nii.gz")
        loaded: Any = [nib.load(x) for x in (path, image)]  # type: ignore[attr-defined]
        a, b = loaded
        assert a.shape == b.shape
        assert np.allclose(a.affine, b.affine)
        assert set(np.unique(volume(path))) <= set(about["labels"].values())
        assert 0 <= volume(image).min() < volume(image).max() <= 1


def test_bids(cohort: Cohort, tmp_path: Path) -> None:
    """The rules for derivatives: description, names of entities, tables with tabs, one row per subject."""
    (folder,) = export(cohort, ["bids"], tmp_path)
    about = json.loads((folder / "dataset_description.json").read_text())
    assert {"Name", "BIDSVersion", "GeneratedBy"} <= set(about)
    assert about["DatasetType"] == "derivative"
    rows = (folder / "participants.tsv").read_text().splitlines()
    assert rows[0].split("\t")[0] == "participant_id"
    assert len(rows) == 11
    for row in rows[1:]:
        subject = row.split("\t")[0]
        name = f"{subject}_desc-virtual_dseg"
        place = folder / subject / "anat"
        assert {p.name for p in place.iterdir()} == {f"{name}.nii.gz", f"{name}.tsv", f"{name}.json"}
        head, *labels = (place / f"{name}.tsv").read_text().splitlines()
        assert head.split("\t")[:1] == ["index"]
        known = {int(line.split("\t")[0]) for line in labels}
        assert set(np.unique(volume(place / f"{name}.nii.gz"))) - {0} <= known


def test_monai(cohort: Cohort, tmp_path: Path) -> None:
    (folder,) = export(cohort, ["monai"], tmp_path, images=True)
    about = json.loads((folder / "datalist.json").read_text())
    assert len(about["training"]) + len(about["testing"]) == 10
    for item in about["training"] + about["testing"]:
        assert volume(folder / item["image"]).shape == volume(folder / item["label"]).shape


def test_plain_files_and_meshes(cohort: Cohort, tmp_path: Path) -> None:
    nifti, mesh = export(cohort, ["nifti", "mesh"], tmp_path)
    assert len(list(nifti.glob("*.nii.gz"))) == 10
    assert len(list(mesh.glob("*.vtp"))) == 10


def test_a_grown_cohort_moves_nobody_between_parts(cohort: Cohort) -> None:
    from anatomica.cohort.exports.patients import cases

    fewer = Cohort(cohort.folder, cohort.plan, cohort.records[:5])
    assert [c.test for c in cases(fewer)] == [c.test for c in cases(cohort)][:5]


def test_nothing_to_export_is_said(cohort: Cohort, tmp_path: Path) -> None:
    with pytest.raises(AnatomicaError, match="nothing to export"):
        export(Cohort(cohort.folder, cohort.plan, ()), ["nifti"], tmp_path)


def test_synthetic_images_show_the_labels_and_repeat(cohort: Cohort) -> None:
    patient = fake_patient(cohort.plan, 0)
    made = patient.label_map
    assert made is not None
    array = np.zeros((32, 32, 32), dtype=made.array.dtype)
    array[8:24, 8:24, 8:24] = 1
    array[12:20, 12:20, 12:20] = 2
    label_map = LabelMap(array, made.affine, made.table)
    image = synthetic_image(label_map, 3)
    assert np.array_equal(image, synthetic_image(label_map, 3))
    assert not np.array_equal(image, synthetic_image(label_map, 4))
    apart = []
    for seed in range(8):
        image = synthetic_image(label_map, seed)
        shell, core = image[array == 1], image[array == 2]
        apart.append(abs(shell.mean() - core.mean()) / np.sqrt(shell.var() + core.var()))
    assert np.median(apart) > 1.5  # labels differ by more than the noise in most contrasts


@pytest.mark.slow
def test_nnunet_accepts_the_data_set(cohort: Cohort, tmp_path: Path) -> None:
    """nnU-Net's own check; it needs the extra `slow`."""
    (folder,) = export(cohort, ["nnunet"], tmp_path, images=True)
    checks = importlib.import_module("nnunetv2.experiment_planning.verify_dataset_integrity")
    checks.verify_dataset_integrity(str(folder), 1)
    path = next((folder / "labelsTr").iterdir())
    made = nib.load(path)  # type: ignore[attr-defined]
    wrong = np.asarray(made.dataobj).copy()  # type: ignore[union-attr]
    wrong[0, 0, 0] = 99
    nib.save(nib.Nifti1Image(wrong, made.affine), path)  # type: ignore[attr-defined,union-attr]
    with pytest.raises(RuntimeError):
        checks.verify_dataset_integrity(str(folder), 1)


@pytest.mark.slow
def test_the_bids_validator_finds_no_error(cohort: Cohort, tmp_path: Path) -> None:
    """The official validator with all rules for derivatives; it needs the extra `slow`."""
    (folder,) = export(cohort, ["bids"], tmp_path)
    command = [Path(sys.executable).with_name("bids-validator-deno"), str(folder), "--format", "json"]

    def errors() -> list[str]:
        told = json.loads(subprocess.run(command, capture_output=True, text=True).stdout)
        return [x["code"] for x in told["issues"]["issues"] if x["severity"] == "error"]

    assert errors() == []
    place = next(folder.glob("sub-*/anat/*_dseg.nii.gz"))
    place.rename(place.with_name(place.name.replace("_dseg", "_labels")))
    assert "NOT_INCLUDED" in errors()


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore:NvImgCodecPydicomReader")
def test_monai_loads_the_datalist(cohort: Cohort, tmp_path: Path) -> None:
    """MONAI's own loader; it needs the extra `slow`."""
    (folder,) = export(cohort, ["monai"], tmp_path, images=True)
    data = importlib.import_module("monai.data")
    transforms = importlib.import_module("monai.transforms")
    items = data.load_decathlon_datalist(str(folder / "datalist.json"), True, "training", str(folder))
    read = transforms.LoadImaged(keys=["image", "label"])
    for item in items:
        loaded = read(item)
        assert loaded["image"].shape == loaded["label"].shape == (8, 8, 8)
        assert np.allclose(loaded["image"].affine, loaded["label"].affine)
