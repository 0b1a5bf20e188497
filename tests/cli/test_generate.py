"""`anatomica generate` and the way from a run to samples."""

import nibabel as nib
import numpy as np
from typer.testing import CliRunner

from anatomica.cli import app
from anatomica.data import build_phantom_cache
from anatomica.generation.draw import generate
from anatomica.generation.options import Options
from anatomica.prior.card import trained_steps
from anatomica.prior.training.budget import Budget
from anatomica.prior.training.run import export_run, read_autoencoder
from anatomica.prior.training.train import RunOptions, train_autoencoder, train_denoiser
from anatomica.prior.zoo import load_model
from tiny_prior import CORONARY, TINY, ellipsoids, save_tiny_model


def test_generate_writes_label_maps_sheet_and_volumes(tmp_path):
    folder = save_tiny_model(tmp_path / "model")
    command = ["generate", "--model", str(folder), "--samples", "2", "--seed", "7", "--steps", "2"]
    result = CliRunner().invoke(app, [*command, "--out", str(tmp_path / "out")])
    assert result.exit_code == 0, result.output
    written = {p.name for p in (tmp_path / "out").iterdir()}
    assert written >= {"coronary-000007.nii.gz", "coronary-000008.nii.gz", "contact-sheet.png"}
    image = nib.Nifti1Image.from_filename(tmp_path / "out" / "coronary-000007.nii.gz")
    assert image.shape == (16, 16, 16)
    np.testing.assert_allclose(image.header.get_zooms(), 0.8)
    assert "per minute" in result.output
    assert "seed 7" in result.output
    again = generate(load_model(folder), seeds=[7], options=Options(steps=2))[0]
    np.testing.assert_array_equal(np.asarray(image.dataobj), again.label_map.array)


def test_from_a_run_to_a_model(tmp_path):
    maps, quiet = ellipsoids(4), RunOptions(quiet=True)
    run = tmp_path / "run"
    train_autoencoder(maps, run / "autoencoder", CORONARY, TINY, Budget(steps=2), quiet)
    autoencoder, about = read_autoencoder(run)
    assert about["step"] == 2
    train_denoiser(maps, autoencoder, run / "denoiser", CORONARY, TINY, Budget(steps=2), quiet)
    folder = export_run(run, tmp_path / "model", maps, ellipsoids(2, seed=5), ellipsoids(2, n=32, seed=5))
    card = load_model(folder).card
    assert card["population"]["Lu"]["present"] == 1.0
    assert 0 <= card["reconstruction"]["field_fine"]["mean"] <= 1
    assert 0 <= card["reconstruction"]["field_fractions"]["mean"] <= 1
    assert card["reconstruction"]["held_out"] == card["reconstruction"]["held_out_fine"] == 2
    touching = {name: list(others) for name, others in card["neighbours"]["contact"].items()}
    assert touching == {
        "background": ["Lu"],
        "Lu": ["background", "Ca"],
        "Ca": ["Lu", "Ve"],
        "Ve": ["Ca"],
    }
    assert card["training"]["denoiser"]["step"] == 2
    assert generate(load_model(folder), seeds=[0], options=Options(steps=2))[0].label_map.shape == (
        16,
        16,
        16,
    )
    # And on from there, with other data: the card counts the steps of both.
    model, more, on = load_model(folder), ellipsoids(6, seed=3), tmp_path / "on"
    since = {"model": model.hash, "steps": trained_steps(card, "denoiser")}
    part, one = model.autoencoder, Budget(steps=1)
    train_autoencoder(more, on / "autoencoder", CORONARY, TINY, one, quiet, start=part, same_latents=True)
    train_denoiser(more, part, on / "denoiser", CORONARY, TINY, one, quiet, model.denoiser, since)
    assert trained_steps(load_model(export_run(on, tmp_path / "more")).card, "denoiser") == 3


def test_check_measures_a_model_and_keeps_it_in_the_card(tmp_path):
    folder = save_tiny_model(tmp_path / "model")
    cache = build_phantom_cache("coronary", 12, tmp_path / "cache", n=32).folder
    command = ["train", "check", str(folder), "--data", str(cache), "--samples", "8", "--eta", "2"]
    result = CliRunner().invoke(app, command)
    assert result.exit_code == 0, result.output
    model = load_model(folder)
    assert model.sampling.eta == 2
    assert model.neighbours is not None
    assert model.card["samples"]["samples"] == 8
    held_out = model.card["reconstruction"]["held_out"]
    assert 0 < held_out == model.card["reconstruction"]["held_out_fine"] < 12
    assert 0 <= model.card["samples"]["mended_share"] < 1
