"""`anatomica train` refuses a cache of another anatomy than the run's or the model's."""

from pathlib import Path

import pytest
from typer.testing import CliRunner

from anatomica.anatomy.catalogue import anatomy as anatomy_of
from anatomica.cli import app
from anatomica.data import build_phantom_cache
from anatomica.errors import AnatomicaError
from anatomica.prior.card import steps_of
from anatomica.prior.training.budget import Budget
from anatomica.prior.training.run import read_autoencoder
from anatomica.prior.training.train import RunOptions, train_autoencoder
from tiny_prior import TINY, ellipsoids, save_tiny_model


def run(*arguments) -> None:
    result = CliRunner().invoke(app, ["train", *map(str, arguments)])
    if isinstance(result.exception, Exception):
        raise result.exception


def tiny_run(folder: Path, anatomy: str) -> Path:
    quiet = RunOptions(quiet=True)
    train_autoencoder(
        ellipsoids(2), folder / "autoencoder", anatomy_of(anatomy), TINY, Budget(steps=1), quiet
    )
    return folder


@pytest.fixture(scope="module")
def folders(tmp_path_factory):
    """A cache of coronary phantoms, a cardiac model and a cardiac run."""
    folder = tmp_path_factory.mktemp("anatomies")
    cache = build_phantom_cache("coronary", 6, folder / "cache", n=32, seed=10).folder
    model = save_tiny_model(folder / "model", "cardiac")
    return cache, model, tiny_run(folder / "run", "cardiac")


def test_export(folders, tmp_path):
    cache, _, made = folders
    with pytest.raises(AnatomicaError, match=r"cache holds coronary maps, but .*run is cardiac"):
        run("export", made, "--data", cache, "--out", tmp_path / "out")


def test_export_with_a_finer_cache(folders, tmp_path):
    cache, _, _ = folders
    made = tiny_run(tmp_path / "run", "coronary")
    finer = build_phantom_cache("aortic", 1, tmp_path / "finer", n=32).folder
    with pytest.raises(AnatomicaError, match=r"finer holds aortic maps, but .*run is coronary"):
        run("export", made, "--data", cache, "--fine", finer, "--out", tmp_path / "out")


def test_check_leaves_the_card_alone(folders):
    cache, model, _ = folders
    before = (model / "card.json").read_bytes()
    with pytest.raises(AnatomicaError, match=r"cache holds coronary maps, but .*model is cardiac"):
        run("check", model, "--data", cache, "--samples", 8)
    assert (model / "card.json").read_bytes() == before


def test_baseline(folders, tmp_path):
    cache, model, _ = folders
    with pytest.raises(AnatomicaError, match=r"cache holds coronary maps, but .*model is cardiac"):
        run("baseline", "--data", cache, "--model", model, "--out", tmp_path, "--steps", 1)


def test_decoders_count_the_steps_before_them(folders, tmp_path):
    cache, _, _ = folders
    made = tiny_run(tmp_path / "run", "coronary")
    run("decoders", "-a", "coronary", "--data", cache, "--out", made, "--steps", 2)
    assert steps_of(read_autoencoder(made)[1]) == 3


def test_autoencoder(folders, tmp_path):
    cache, _, _ = folders
    with pytest.raises(AnatomicaError, match=r"cache is of coronary anatomy, but --anatomy is cardiac"):
        run("autoencoder", "-a", "cardiac", "--data", cache, "--out", tmp_path, "--steps", 1)
