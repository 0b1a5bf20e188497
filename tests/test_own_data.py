"""The way of docs/own_data.md: somebody's own hearts of five tissues, and a model trained on with them."""

import re
import runpy
import sys
from pathlib import Path

import numpy as np
import pytest
from typer.testing import CliRunner

from anatomica.anatomy.catalogue import ANATOMIES
from anatomica.cli import app
from anatomica.data.cache import open_cache
from anatomica.errors import AnatomicaError
from anatomica.prior import presets
from anatomica.prior.zoo import load_model
from tiny_prior import TINY, save_tiny_model

sys.path.insert(0, str(Path(__file__).parent))
import trees

EXAMPLE = Path(__file__).parent.parent / "examples" / "own_data_check.py"
CARDIAC = ANATOMIES["cardiac"]
CHAMBERS = ("Myo", "LA", "LV", "RA", "RV")
MAPPING = "10: Myo\n20: left atrium\n30: LV\n40: heart_atrium_right\n50: RV\n60: background\n70: background\n"


def run(*arguments) -> str:
    result = CliRunner().invoke(app, [str(a) for a in arguments], env={"COLUMNS": "200"})
    if isinstance(result.exception, Exception):
        raise result.exception
    assert result.exit_code == 0, result.output
    return result.output


def write_hearts(folder: Path, count: int) -> None:
    """Hearts without veins, numbered in tens."""
    for i in range(count):
        heart = trees.balls("cardiac", trees.HEART, spacing_mm=8.0, n=32, seed=i)
        array = np.where(heart.array <= CARDIAC.table.id_of("PA"), heart.array * 10, 0)
        trees.write(folder / f"heart-{i:02d}.nii.gz", array, heart.affine)


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    """Hearts, mapping, cache, the run of a denoiser, and the model that it started from."""
    folder = tmp_path_factory.mktemp("own")
    write_hearts(folder / "hearts", 9)
    (folder / "labels.yaml").write_text(MAPPING)
    base = save_tiny_model(folder / "base", "cardiac")
    said = run(*prepare(folder), "--no-missing", "--out", folder / "cache")
    assert "9 cases at 16^3 (8 train, 1 validation), 0 left out" in said
    assert "not in every case: Ao (none), PA (none), IVC (none), SVC (none), PV (none)" in said
    with pytest.MonkeyPatch.context() as patch:
        patch.setitem(presets.PRESETS, "small", TINY)
        run("train", "denoiser", "--from", base, "-d", folder / "cache", "-o", folder / "run", "--steps", 4)
    return folder


def prepare(folder: Path) -> tuple:
    where = "--root", folder / "hearts", "--labels", folder / "labels.yaml"
    return "prepare", "generic", "--anatomy", "cardiac", *where, "-n", 16, "-j", 1


def test_from_label_maps_to_samples(made, tmp_path, capsys) -> None:
    cache, base, model = made / "cache", made / "base", tmp_path / "model"
    assert open_cache(cache).cases[0].present == CHAMBERS
    export = "train", "export", made / "run", "--from", base, "-d", cache, "-o", model
    with pytest.raises(AnatomicaError, match=r"at least 20 patients, here are 8: .*--not-private"):
        run(*export)
    run(*export, "--not-private")
    first, tuned = load_model(base), load_model(model)
    ours, theirs = (m.autoencoder.state_dict() for m in (tuned, first))
    assert all((ours[name] == theirs[name]).all() for name in theirs), "the latent space stays"
    assert tuned.hash != first.hash
    assert tuned.population is not None
    assert len(tuned.population) == 8
    free = "generate", "--model", model, "--samples", 2, "--steps", 2, "--until-valid", 1
    run(*free, "--out", tmp_path / "free")
    assert len(list((tmp_path / "free").glob("cardiac-*.nii.gz"))) == 2
    held = next(case.source for case in open_cache(cache).cases if case.split == "validation")
    like = "--task", "right-ventricle", "--like", made / "hearts" / held, "--labels", made / "labels.yaml"
    led = *free, *like, "--samples", 1, "--solver", "gradient", "--out", tmp_path / "led"
    assert re.search(r"\d of 1 valid", run(*led))
    capsys.readouterr()
    runpy.run_path(str(EXAMPLE))["main"](model, cache, tmp_path / "free")
    said = capsys.readouterr().out
    assert said.count(", redrawn: Dice 0.") == 9
    assert (
        len(re.findall(r"^(?:heart-0\d|cardiac-00000\d.nii.gz): nearest is heart-0\d, Dice 0", said, re.M))
        == 3
    )


def test_each_rule_counts_cases_and_is_named_where_none_is_left(made, tmp_path) -> None:
    """Two volumes that no patient has are one case that the rule leaves out."""
    (tmp_path / "hearts").symlink_to(made / "hearts")
    (tmp_path / "labels.yaml").write_text(
        "10: LV\n20: LA\n30: SVC\n40: RA\n50: RV\n60: background\n70: Myo\n"
    )
    arguments = [str(a) for a in (*prepare(tmp_path), "--out", tmp_path / "cache")]
    said = CliRunner().invoke(app, arguments, env={"COLUMNS": "200"}).output
    assert "volume: SVC has" in said
    assert "volume: Myo has" in said
    assert "missing: 9\n" in said
    assert "volume: 9\n" in said
    with pytest.raises(AnatomicaError, match=r"no case is left; .*--no-missing, --no-volume switches"):
        run(*prepare(tmp_path), "--out", tmp_path / "again")


def test_a_line_that_names_no_tissue_is_refused_once_and_not_in_every_file(made, tmp_path) -> None:
    (tmp_path / "hearts").symlink_to(made / "hearts")
    for wrong, said in (
        (MAPPING.replace("70: background", "70: bakground"), r"`70: bakground`: .*did you mean background"),
        ('"*": background\n', r"labels.yaml.*none of its labels"),
    ):
        (tmp_path / "labels.yaml").write_text(wrong)
        with pytest.raises(AnatomicaError, match=said):
            run(*prepare(tmp_path), "--out", tmp_path / "cache")
        assert not (tmp_path / "cache").exists()
