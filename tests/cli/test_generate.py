"""`anatomica generate` and the way from a run to samples."""

import nibabel as nib
import numpy as np
import pytest
import torch
from typer.testing import CliRunner

from anatomica.cli import app
from anatomica.errors import AnatomicaError
from anatomica.generation import generate
from anatomica.models.zoo import load_model
from anatomica.train import Options, train_autoencoder, train_denoiser
from anatomica.training.budget import Budget
from anatomica.training.run import export_run, import_model, read_autoencoder
from tiny_prior import TINY, ellipsoids, save_tiny_model


def test_generate_writes_label_maps_sheet_and_volumes(tmp_path):
    folder = save_tiny_model(tmp_path / "model")
    command = ["generate", "--model", str(folder), "--samples", "2", "--seed", "7", "--steps", "2"]
    result = CliRunner().invoke(app, [*command, "--out", str(tmp_path / "out")])
    assert result.exit_code == 0, result.output
    written = {p.name for p in (tmp_path / "out").iterdir()}
    assert written >= {"coronary-000007.nii.gz", "coronary-000008.nii.gz", "contact-sheet.png"}
    image = nib.load(tmp_path / "out" / "coronary-000007.nii.gz")
    assert image.shape == (16, 16, 16)
    np.testing.assert_allclose(image.header.get_zooms(), 0.8)
    assert "a minute" in result.output
    assert "seed 7" in result.output
    again = generate(load_model(folder), seeds=[7], steps=2)[0]
    np.testing.assert_array_equal(np.asarray(image.dataobj), again.label_map.array)


def test_from_a_run_to_a_model(tmp_path):
    maps, quiet = ellipsoids(4), Options(quiet=True)
    run = tmp_path / "run"
    train_autoencoder(maps, run / "autoencoder", "coronary", TINY, Budget(steps=2), quiet)
    autoencoder, about = read_autoencoder(run)
    assert about["step"] == 2
    train_denoiser(maps, autoencoder, run / "denoiser", "coronary", TINY, Budget(steps=2), quiet)
    folder = export_run(run, tmp_path / "model", maps, ellipsoids(2, seed=5), ellipsoids(2, n=32, seed=5))
    card = load_model(folder).card
    assert card["population"]["Lu"]["present"] == 1.0
    assert 0 <= card["reconstruction"]["field_fine"]["mean"] <= 1
    assert card["training"]["denoiser"]["step"] == 2
    assert generate(load_model(folder), seeds=[0], steps=2)[0].label_map.shape == (16, 16, 16)
    # And back: the same weights, to be trained on with other data.
    back = import_model(folder, tmp_path / "back")
    again, _ = read_autoencoder(back)
    for name, value in load_model(folder).autoencoder.state_dict().items():
        torch.testing.assert_close(again.state_dict()[name], value, rtol=0, atol=0)
    more, on = ellipsoids(6, seed=3), Options(quiet=True, resume=True)
    train_denoiser(more, again, back / "denoiser", "coronary", TINY, Budget(steps=1), on)
    assert load_model(export_run(back, tmp_path / "more")).card["training"]["denoiser"]["step"] == 1
    with pytest.raises(AnatomicaError, match="already holds a run"):
        import_model(folder, back)
