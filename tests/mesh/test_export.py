"""`anatomica export`: from a label map, or a folder of `anatomica generate`, to files with proof."""

import json
from dataclasses import replace
from pathlib import Path

import highdicom as hd
import numpy as np
import pytest
import trimesh
import vtk  # pyright: ignore[reportMissingImports]
from typer.testing import CliRunner, Result
from vtk.util.numpy_support import vtk_to_numpy  # pyright: ignore[reportMissingImports]

from anatomica.anatomy.label_map import LabelMap
from anatomica.anatomy.labels import LabelTable
from anatomica.anatomy.nifti import load, save
from anatomica.cli import app
from anatomica.data.phantoms import phantom
from anatomica.errors import AnatomicaError
from anatomica.mesh import prove, surface_of
from anatomica.mesh.case import only
from anatomica.mesh.formats import write_surface
from anatomica.mesh.topology import topology
from tiny_prior import save_tiny_model


def run(*words: object) -> Result:
    return CliRunner().invoke(app, ["export", *map(str, words)])


def said(*words: object) -> dict:
    result = run(*words, "--json")
    assert result.exit_code == 0, result.output
    return json.loads(result.stdout)


@pytest.fixture
def file(patient: LabelMap, tmp_path: Path) -> Path:
    path = tmp_path / "in" / "tube.nii.gz"
    save(patient, path)
    return path


@pytest.fixture(scope="module")
def generated(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    """A model and the folder of a run of it, with surfaces."""
    folder = tmp_path_factory.mktemp("generated")
    model = save_tiny_model(folder / "model")
    command = ["generate", "--model", str(model), "--samples", "2", "--steps", "2", "--mesh", "ply"]
    result = CliRunner().invoke(app, [*command, "--out", str(folder / "run")])
    assert result.exit_code == 0, result.output
    assert "2 of 2 surfaces are proved" in result.output
    return model, folder / "run"


def test_surfaces_with_proof_and_names(file, patient, surface, tmp_path) -> None:
    out = tmp_path / "out"
    result = run(file, "--to", "stl,vtp", "--to", "gltf", "--out", out)
    assert result.exit_code == 0, result.output
    assert "the proof holds" in result.output
    names = {"tube-lumen.stl", "tube-wall.stl", "tube-lump.stl", "tube.vtp", "tube.glb", "tube-mesh.json"}
    assert {p.name for p in out.iterdir()} == names
    found = json.loads((out / "tube-mesh.json").read_text())["surface"]
    assert found["proof"]["holds"]
    assert (found["space"], found["unit"], found["vertices_from"]) == ("RAS", "mm", "the voxels")
    assert {x["id"]: x["name"] for x in found["materials"]} == {1: "lumen", 2: "wall", 5: "lump"}
    assert sorted(x for files in found["files"].values() for x in files) == sorted(names - {"tube-mesh.json"})
    mesh = trimesh.load(out / "tube-wall.stl")
    assert isinstance(mesh, trimesh.Trimesh)
    assert mesh.volume / 1000 == pytest.approx(patient.volume_ml("wall"), rel=1e-4)


def test_what_was_made_in_the_same_way_is_not_made_again(file, patient, tmp_path) -> None:
    out = tmp_path / "out"
    command = (file, "--out", out, "--to")
    assert not said(*command, "ply")["cases"][0]["there_before"]
    made = (out / "tube.ply").stat().st_mtime_ns
    assert said(*command, "ply")["cases"][0]["there_before"]
    assert (out / "tube.ply").stat().st_mtime_ns == made
    # Another format leaves the first alone, and the side file names both.
    assert not said(*command, "ply,vtp")["cases"][0]["there_before"]
    assert (out / "tube.ply").stat().st_mtime_ns == made
    assert set(json.loads((out / "tube-mesh.json").read_text())["surface"]["files"]) == {"ply", "vtp"}
    # A file that is gone, other tissues, another label map, --overwrite: made anew.
    (out / "tube.ply").unlink()
    assert not said(*command, "ply")["cases"][0]["there_before"]
    assert not said(*command, "ply", "--tissue", "wall")["cases"][0]["there_before"]
    assert not said(*command, "ply")["cases"][0]["there_before"]
    assert not said(*command, "ply", "--overwrite")["cases"][0]["there_before"]
    save(replace(patient, array=np.where(patient.array == 5, 0, patient.array)), file)
    assert not said(*command, "ply")["cases"][0]["there_before"]
    assert set(json.loads((out / "tube-mesh.json").read_text())["surface"]["files"]) == {"ply"}


def test_one_tissue_of_a_surface_is_the_same_surface(patient, surface) -> None:
    part, kept = surface.part("wall"), only(patient, ("wall",))
    proof = prove(part, kept)
    assert proof.holds
    assert part.present() == ("wall",)
    assert (part.sides[:, 1] == 0).all()
    assert part.volume_ml("wall") == pytest.approx(surface.volume_ml("wall"), rel=1e-12)
    # The very same points: what the wall and the lumen share stays where it was.
    assert {tuple(p) for p in part.vertices} <= {tuple(p) for p in surface.vertices}
    both = surface.part("wall", "lumen")
    assert prove(both, only(patient, ("wall", "lumen"))).holds
    assert topology(both.vertices, both.of("lumen", "wall")).betti == (1, 0, 0)


def test_tetrahedra(file, patient, tmp_path) -> None:
    out = tmp_path / "out"
    options = ("--edge-mm", 8, "--tolerance-mm", 0.5, "--tissue", "lumen", "--tissue", "wall")
    result = run(file, "--to", "vtu,opencarp", *options, "--centreline", "lumen", "--out", out)
    assert result.exit_code == 0, result.output
    assert "tetrahedra against surface" in result.output
    assert "60 to 71 degrees" in result.output
    assert "2 of 2 proofs hold" in result.output
    reader = vtk.vtkXMLUnstructuredGridReader()
    reader.SetFileName(str(out / "tube.vtu"))
    reader.Update()
    sizes = vtk.vtkCellSizeFilter()
    sizes.SetInputData(reader.GetOutput())
    sizes.Update()
    cells = sizes.GetOutput().GetCellData()
    material, volume = (vtk_to_numpy(cells.GetArray(name)) for name in ("material", "Volume"))
    assert set(material) == {1, 2}
    for name in ("lumen", "wall"):
        own = volume[material == patient.table.id_of(name)].sum() / 1000
        assert own == pytest.approx(patient.volume_ml(name), rel=0.01)
    found = json.loads((out / "tube-mesh.json").read_text())
    assert found["tetrahedra"]["proof"]["holds"]
    assert found["tetrahedra"]["files"]["opencarp"] == ["tube.pts", "tube.elem", "tube.lon"]
    assert found["centreline"]["files"] == {"centreline": ["tube-centreline.vtp"]}


def test_a_run_s_folder_is_meshed_on_the_field_s_border(generated, tmp_path) -> None:
    model, folder = generated
    report = json.loads((folder / "report.json").read_text())
    assert all(sample["surface"]["holds"] for sample in report["samples"])
    assert "the proof holds for 2 of 2" in (folder / "report.html").read_text()
    found = said(folder, "--to", "vtp", "--model", model, "--out", tmp_path)
    assert [(x["name"], x["on_field"], x["note"]) for x in found["cases"]] == [
        ("coronary-000000", True, ""),
        ("coronary-000001", True, ""),
    ]
    # `generate --mesh` wrote the same surface.
    written = trimesh.load(folder / "coronary-000000.ply", process=False)
    assert isinstance(written, trimesh.Trimesh)
    reader = vtk.vtkXMLPolyDataReader()
    reader.SetFileName(str(tmp_path / "coronary-000000.vtp"))
    reader.Update()
    points = vtk_to_numpy(reader.GetOutput().GetPoints().GetData())
    np.testing.assert_allclose(points, written.vertices, rtol=0, atol=1e-6)
    # The border between voxels is not where relaxation alone puts it.
    relaxed = surface_of(load(folder / "coronary-000000.nii.gz")).vertices
    assert len(relaxed) != len(points) or np.abs(relaxed - points).max() > 0.01


def test_a_latent_that_does_not_fit_is_not_used(generated, tmp_path) -> None:
    model, folder = generated
    (case,) = said(folder / "coronary-000000.nii.gz", "--to", "vtp", "--out", tmp_path / "a")["cases"]
    assert not case["on_field"]
    assert "give it by --model" in case["note"]
    for file in folder.glob("coronary-000001*"):
        (tmp_path / file.name).write_bytes(file.read_bytes())
    path = tmp_path / "coronary-000001.nii.gz"
    label_map = load(path)
    array = label_map.array.copy()
    array[:3] = 0
    save(replace(label_map, array=array), path)
    command = (path, "--to", "vtp", "--model", model, "--out", tmp_path / "b")
    (case,) = said(*command)["cases"]
    assert "not the one that its latent was written with" in case["note"]
    latent = tmp_path / "coronary-000001_latent.safetensors"
    latent.write_bytes(latent.read_bytes()[:40])
    result = run(*command)
    assert isinstance(result.exception, AnatomicaError)
    assert "is not a latent" in str(result.exception)


def test_a_model_without_a_latent_is_said(generated, file, tmp_path) -> None:
    result = run(file, "--to", "ply", "--model", generated[0], "--out", tmp_path)
    assert result.exit_code == 0, result.output
    assert "there is no latent beside the label map" in " ".join(result.output.split())


def test_dicom_segmentation(tmp_path) -> None:
    save(phantom("coronary", 3, 32).label_map, tmp_path / "artery.nii.gz")
    out = tmp_path / "out"
    result = run(tmp_path / "artery.nii.gz", "--to", "dicom-seg", "--out", out)
    assert result.exit_code == 0, result.output
    label_map = load(tmp_path / "artery.nii.gz")
    seg = hd.seg.segread(out / "artery-seg.dcm")
    names = [seg.get_segment_description(n).segment_label for n in seg.segment_numbers]
    assert tuple(names) == label_map.present()
    assert len(list((out / "artery-ct").iterdir())) == 32
    again = run(tmp_path / "artery.nii.gz", "--to", "dicom-seg", "--ct", out / "artery-ct", "--out", out)
    assert again.exit_code == 0, again.output
    onto = hd.seg.segread(out / "artery-seg.dcm")
    source = onto.ReferencedSeriesSequence[0].SeriesInstanceUID
    import pydicom

    assert source == pydicom.dcmread(out / "artery-ct" / "0001.dcm").SeriesInstanceUID
    # Contours with their own proof; the segmentation that is there already is left alone.
    both = ("--to", "dicom-seg,rtstruct", "--ct", out / "artery-ct", "--out", out)
    drawn = run(tmp_path / "artery.nii.gz", *both)
    assert drawn.exit_code == 0, drawn.output
    assert "1 of 1 proofs hold; 3 files" in drawn.output
    assert hd.seg.segread(out / "artery-seg.dcm").SOPInstanceUID == onto.SOPInstanceUID
    read = pydicom.dcmread(out / "artery-rtstruct.dcm")
    assert tuple(roi.ROIName for roi in read.StructureSetROISequence) == label_map.present()


def test_masks_and_folders_of_label_maps(patient, tmp_path) -> None:
    heart = phantom("cardiac", 3, 32).label_map
    for name in ("LV", "RV"):
        mask = LabelMap(heart.mask(name).astype(np.uint8), heart.affine, LabelTable.from_names({1: name}))
        save(mask, tmp_path / "masks" / f"{name}.nii.gz")
    (case,) = said(tmp_path / "masks", "--anatomy", "cardiac", "--to", "vtp", "--out", tmp_path / "a")[
        "cases"
    ]
    assert case["name"] == "masks"
    assert [t["name"] for t in case["surface"]["tissues"]] == ["LV", "RV"]
    for seed in (3, 4):
        save(phantom("cardiac", seed, 32).label_map, tmp_path / "hearts" / f"heart-{seed}.nii.gz")
    (tmp_path / "hearts" / "broken.nii.gz").write_bytes(b"no NIfTI")
    result = run(tmp_path / "hearts", "-a", "cardiac", "--to", "ply", "--out", tmp_path / "b")
    assert result.exit_code == 1
    assert "2 of 3 label maps exported, 1 failed; 2 of 2 proofs hold" in result.output
    assert {p.name for p in (tmp_path / "b").glob("*.ply")} == {"heart-3.ply", "heart-4.ply"}


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        ("FILE --to obj", "unknown format 'obj'; allowed: stl, ply"),
        ("FILE", "nothing to write"),
        ("FILE --to stl --edge-mm 2", "the options of tetrahedra need --to"),
        ("FILE --to vtu --fine-edge-mm 1", "name the tissue (--fine)"),
        ("FILE --to stl --model nowhere", "no model 'nowhere'"),
        ("FILE --to stl --ct series", "a CT series is for DICOM: add --to dicom-seg or rtstruct"),
        ("FILE --to stl --tissue lung", "unknown tissue 'lung'"),
        ("FILE --centreline lung", "unknown tissue 'lung'"),
        ("FILE --to dicom-seg", "no SNOMED CT code"),
        ("FOLDER --to stl", "give --anatomy"),
        ("nowhere.nii.gz --to stl", "no such file"),
        ("nowhere --to stl", "no such file"),
        ("NOTHING --to stl", "nothing: the folder holds no label map"),
        ("NOTHING --to stl --anatomy cardiac", "nothing: the folder holds no label map"),
        ("EMPTY --to stl", "empty.nii.gz: the label map has no tissue"),
        ("EMPTY --to dicom-seg --anatomy cardiac", "empty.nii.gz: the label map has no tissue"),
        ("FILE --to dicom-seg --ct nowhere", "nowhere: no such folder"),
        ("FILE --to vtu --fine lung", "unknown tissue 'lung'"),
        ("FILE --to vtu --tissue lumen --fine wall", "--fine wall: the tissue does not occur"),
        ("FILE --to stl --model NOTHING", "nothing"),
    ],
)
def test_mistakes_are_sentences(words, sentence, file, patient, tmp_path) -> None:
    (tmp_path / "nothing").mkdir()
    save(replace(patient, array=np.zeros_like(patient.array)), tmp_path / "empty" / "empty.nii.gz")
    given = {"FILE": file, "FOLDER": file.parent, "NOTHING": tmp_path / "nothing"}
    given["EMPTY"] = tmp_path / "empty" / "empty.nii.gz"
    result = run(*(given.get(w, w) for w in words.split()), "--out", tmp_path / "out")
    assert isinstance(result.exception, AnatomicaError), result.output
    assert sentence in str(result.exception)


def test_a_proof_that_does_not_hold_is_exit_code_1(file, tmp_path, monkeypatch) -> None:
    monkeypatch.setattr("anatomica.mesh.proof.ALLOWED_SMALL", -1.0)
    result = run(file, "--to", "ply", "--out", tmp_path)
    assert result.exit_code == 1
    assert "THE PROOF DOES NOT HOLD" in result.output
    assert not json.loads((tmp_path / "tube-mesh.json").read_text())["surface"]["proof"]["holds"]
    again = run(file, "--to", "ply", "--out", tmp_path)
    assert again.exit_code == 1
    assert "was exported like this before" in again.output


def test_names_from_a_file_stay_in_the_folder(patient, tmp_path) -> None:
    table = LabelTable.from_names({1: "../up", 2: "a b", 5: "A_b"})
    surface = surface_of(replace(patient, table=table))
    (tmp_path / "deep").mkdir()
    paths = write_surface(tmp_path / "deep", "x", surface, "stl")
    assert [p.name for p in paths] == ["x-.._up.stl", "x-a_b-2.stl", "x-A_b-5.stl"]
    assert sorted((tmp_path / "deep").iterdir()) == sorted(paths)


def test_more_labels_than_the_kernel_counts_are_refused(patient) -> None:
    table = LabelTable.from_names({i: f"label {i}" for i in range(1, 300)})
    with pytest.raises(AnatomicaError, match="at most 256"):
        surface_of(replace(patient, table=table))
