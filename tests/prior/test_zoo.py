"""Saving and loading models; every way a folder can be wrong has a sentence."""

import json
import shutil
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch
from typer.testing import CliRunner

from anatomica.anatomy.catalogue import anatomy
from anatomica.cli import app
from anatomica.errors import AnatomicaError
from anatomica.generation.draw import generate
from anatomica.generation.options import Options
from anatomica.prior.population import label_moments, population_moments, union_moments
from anatomica.prior.zoo import load_model
from tiny_prior import ellipsoids, save_tiny_model


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return save_tiny_model(tmp_path_factory.mktemp("zoo") / "model")


def test_loading_gives_the_saved_model_in_half_precision(folder):
    model = load_model(folder)
    assert (model.anatomy, model.n, model.edge_mm) == ("coronary", 16, 12.8)
    assert model.latent_shape == (3, 4, 4, 4)
    assert model.table.names == anatomy("coronary").table.names
    assert not any(p.requires_grad for p in model.denoiser.parameters())
    assert load_model(folder).hash == model.hash


def test_a_path_is_a_folder_even_if_it_is_called_like_an_anatomy(folder, tmp_path, monkeypatch):
    """`train check ./cardiac` must not measure the shipped model and write its card over the user's."""
    shutil.copytree(folder, tmp_path / "cardiac")
    monkeypatch.chdir(tmp_path)
    assert load_model(Path("cardiac")).hash == load_model(folder).hash
    assert load_model("cardiac").anatomy == "cardiac"
    assert load_model("./cardiac").hash == load_model(folder).hash


def test_same_seed_same_label_map_in_any_batch(folder):
    model = load_model(folder)
    three = Options(steps=3)
    a = generate(model, seeds=[3, 4, 5], options=three)
    b = generate(model, seeds=[4], options=three)
    np.testing.assert_array_equal(a[1].label_map.array, b[0].label_map.array)
    assert a[0].label_map.shape == (16, 16, 16)
    assert generate(model, seeds=[4], options=replace(three, resolution=24))[0].label_map.shape == (
        24,
        24,
        24,
    )
    assert generate(model, seeds=[4], options=replace(three, decoder="conv"))[0].label_map.shape == (
        16,
        16,
        16,
    )
    with pytest.raises(AnatomicaError, match="convolutional"):
        generate(model, seeds=[4], options=Options(decoder="conv", resolution=24))


def _broken(folder, tmp_path, change):
    copy = tmp_path / "copy"
    shutil.copytree(folder, copy)
    change(copy)
    return copy


def _edit(key, value):
    def change(copy):
        card = json.loads((copy / "card.json").read_text())
        card[key] = value
        (copy / "card.json").write_text(json.dumps(card))

    return change


def _truncate(copy):
    path = copy / "denoiser.safetensors"
    path.write_bytes(path.read_bytes()[:-10])


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (_truncate, "damaged"),
        (lambda c: (c / "autoencoder.safetensors").unlink(), "missing"),
        (lambda c: (c / "card.json").unlink(), "card.json is missing"),
        (lambda c: (c / "card.json").write_text("{"), "cannot be read"),
        (_edit("format", 99), "format 99"),
        (_edit("anatomy", "dental"), "unknown anatomy"),
        (_edit("labels", ["background", "X"]), "trained on the tissues"),
        (
            _edit("unet", {"channels": [8, 24], "res_blocks": 1, "heads": 1, "attention_at": [2]}),
            "does not fit",
        ),
        (_edit("unet", {"wings": 2}), "unknown settings"),
        (_edit("autoencoder", {"n": 16}), "does not fit"),
        (_edit("neighbours", {"touching": {"Lu": ["X"]}, "whole": []}), "neighbours cannot be read"),
        (_edit("neighbours", ["Lu"]), "neighbours cannot be read"),
        (_edit("neighbours", {"touching": {}}), "neighbours cannot be read"),
    ],
)
def test_a_wrong_folder_is_explained(folder, tmp_path, change, message):
    with pytest.raises(AnatomicaError, match=message):
        load_model(_broken(folder, tmp_path, change))


def test_unknown_model_is_explained(tmp_path):
    with pytest.raises(AnatomicaError, match="neither a shipped anatomy"):
        load_model(tmp_path / "nothing")


def test_moments_of_a_box():
    labels = torch.zeros(16, 16, 16, dtype=torch.uint8)
    labels[2:6, 4:12, 8:10] = 1
    m = label_moments(labels, 3)
    assert m[1, 0] == pytest.approx(4 * 8 * 2 / 16**3)
    np.testing.assert_allclose(m[1, 1:4], [4 / 16, 8 / 16, 9 / 16])
    np.testing.assert_allclose(m[1, 4:7], [(k**2 - 1) / 12 / 256 for k in (4, 8, 2)], atol=1e-12)
    assert np.isnan(m[2, 1])
    assert m[2, 0] == 0


def test_a_union_of_tissues_has_the_moments_of_its_voxels():
    labels = ellipsoids(6)
    labels[0] = 0
    mass, centroid, covariance = union_moments(population_moments(labels, 4), [1, 3])
    together = population_moments(((labels == 1) | (labels == 3)).to(torch.uint8), 2)[1:, 1]
    assert len(mass) == 5
    torch.testing.assert_close(mass.float(), together[:, 0])
    torch.testing.assert_close(centroid.float(), together[:, 1:4])
    diagonal = covariance.diagonal(dim1=-2, dim2=-1).float()
    torch.testing.assert_close(diagonal, together[:, 4:7], atol=1e-6, rtol=1e-4)
    torch.testing.assert_close(covariance[:, 0, 2].float(), together[:, 8], atol=1e-6, rtol=1e-4)


def test_the_folder_keeps_the_population(folder):
    model = load_model(folder)
    assert model.population is not None
    torch.testing.assert_close(model.population, population_moments(ellipsoids(4), 4), equal_nan=True)
    assert model.card["population"]["Lu"]["present"] == 1.0


def test_models_lists_the_numbers_of_a_card(tmp_path):
    folder = save_tiny_model(tmp_path / "model")
    path = folder / "card.json"
    card = json.loads(path.read_text())
    card["reconstruction"] = {"field": {"mean": 0.9123, "tissues": {"Lu": 0.95, "Ca": 0.81}}, "held_out": 7}
    path.write_text(json.dumps(card))
    said = CliRunner().invoke(app, ["models", str(folder), "--markdown"])
    assert said.exit_code == 0
    assert "| anatomy | coronary |" in said.output
    assert "| Dice field | 0.912 |" in said.output
    assert "| least | Ca 0.810 |" in said.output
    assert "| conv | - |" in said.output
