"""Phantoms and samples beside real patients."""

from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pytest
from typer.testing import CliRunner

from anatomica.anatomy.nifti import save
from anatomica.cli import app
from anatomica.data.phantoms import phantom
from anatomica.evaluate.experiments import realism
from anatomica.files import read_json
from tiny_prior import save_tiny_model


@dataclass(frozen=True)
class Made:
    """What stands for a sample here."""

    label_map: object


@pytest.fixture(scope="module")
def hearts(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Four phantoms as files of real hearts."""
    folder = tmp_path_factory.mktemp("hearts")
    for seed in range(4):
        save(phantom("cardiac", 700 + seed, 32).label_map, folder / f"heart-{seed}.nii.gz")
    return folder


def test_hearts_of_one_kind_are_alike_and_inflated_ones_are_not(
    hearts: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Stand-ins for samples: phantoms, and as guided ones such whose ventricle has taken most of the wall."""

    def generated(_model, spec=None, *, seeds, **_more):
        maps = [phantom("cardiac", 900 + seed, 32).label_map for seed in seeds]
        for one in maps if spec is not None else ():
            wall = one.mask("Myo")
            wall[:, :, ::4] = False
            one.array[wall] = one.table.id_of("LV")
        return [Made(one) for one in maps]

    save_tiny_model(tmp_path / "models" / "cardiac", "cardiac", n=32)
    monkeypatch.setattr(realism, "generate", generated)
    found = realism.run(tmp_path, lambda _: None, hearts, None, 10, tmp_path / "models")
    assert found["one_nna"]["phantoms"][0] < 0.75
    assert found["one_nna"]["unconditional samples"][0] < 0.75
    assert found["one_nna"]["samples with a real right ventricle"][0] > 0.95
    kept = read_json(tmp_path / "realism.json")
    assert kept["real"] == 4
    assert "LV volume" in (tmp_path / "realism.md").read_text()


def test_maps_that_lack_a_structure_are_left_out() -> None:
    whole, without = (phantom("cardiac", seed, 32).label_map for seed in (1, 2))
    without.array[without.mask("RA")] = 0
    assert realism._features([whole, without], ["RA", "LV"]).shape == (1, 14)
    assert np.isfinite(realism._features([whole], ["RA", "LV"])).all()


@pytest.mark.parametrize(
    ("options", "said"),
    [((), "--against FOLDER"), (("--against", "nowhere"), "nowhere is not a folder")],
)
def test_real_patients_are_needed(options: tuple[str, ...], said: str) -> None:
    result = CliRunner().invoke(app, ["evaluate", "realism", *options])
    assert result.exit_code == 1
    assert said in str(result.exception)
