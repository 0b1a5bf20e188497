"""Saving and loading models; every way a folder can be wrong has a sentence."""

import hashlib
import json
import shutil
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch
from safetensors.torch import load, save
from typer.testing import CliRunner

from anatomica.anatomy.catalogue import anatomy
from anatomica.cli import app
from anatomica.errors import AnatomicaError
from anatomica.files import sealed
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
        (copy / "card.json").write_text(json.dumps(sealed(card)))

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
        (_edit("sampling", {"rho": 0}), "SamplingConfig: rho: input should be greater than or equal to 0.1"),
        (_edit("sampling", {"sigma_max": 0.001}), "sigma_min < sigma_max"),
        (_edit("sampling", {"eta": float("nan")}), "sampling.eta: input should be a finite number"),
        (_edit("edm", {"sigma_data": "1"}), "EDMConfig: sigma_data: input should be a valid number"),
        (_edit("unet", {"channels": [10**9]}), "less than or equal to 4096, found 1000000000"),
        (_edit("autoencoder", {"n": 18, "channels": [8, 16]}), "sizes do not fit each other"),
        (_edit("edge_mm", 256.0), "trained in a cube of 256.0 mm"),
        (_edit("edge_mm", True), "not a complete model card: edge_mm"),
        (_edit("sha256", {"autoencoder.safetensors": "x"}), "not a complete model card: sha256"),
        (_edit("training", {"denoiser": {"step": "many"}}), "training.denoiser.step"),
        (lambda c: (c / "card.json").write_text('{"a":' * 10**5), "cannot be read: it is nested too deeply"),
        (lambda c: (c / "card.json").write_text("[]"), "does not hold one JSON object"),
        (
            lambda c: (c / "card.json").write_text(
                (c / "card.json").read_text().replace('"eta": 1.0', '"eta": 2.0')
            ),
            "its checksum does not fit",
        ),
    ],
)
def test_a_wrong_folder_is_explained(folder, tmp_path, change, message):
    with pytest.raises(AnatomicaError, match=message):
        load_model(_broken(folder, tmp_path, change))


def test_a_card_that_asks_for_huge_networks_costs_no_memory(folder, tmp_path):
    """A hundred layers of 4096 channels would be 180 GB."""
    wide = {"channels": [4096] * 8, "res_blocks": 12, "heads": 1, "attention_at": []}
    with pytest.raises(AnatomicaError, match="does not fit"):
        load_model(_broken(folder, tmp_path, _edit("unet", wide)))


def test_weights_that_are_not_finite_are_refused(folder, tmp_path):
    def poison(copy):
        path, card = copy / "denoiser.safetensors", json.loads((copy / "card.json").read_text())
        tensors = load(path.read_bytes())
        name = next(k for k in tensors if k.startswith("network."))
        tensors[name].view(-1)[0] = torch.nan
        data = save(tensors)
        path.write_bytes(data)
        card["sha256"][path.name] = hashlib.sha256(data).hexdigest()
        (copy / "card.json").write_text(json.dumps(sealed(card)))

    with pytest.raises(AnatomicaError, match=r"denoiser\.safetensors: .* has numbers that are not finite"):
        load_model(_broken(folder, tmp_path, poison))


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


def test_layouts_of_a_folder_of_before_are_left_alone(tmp_path):
    folder = save_tiny_model(tmp_path / "model")
    hash, path = load_model(folder).hash, folder / "card.json"
    card = json.loads(path.read_text())
    card["sha256"]["layouts.safetensors"] = "0" * 64
    path.write_text(json.dumps(sealed(card)))
    assert load_model(folder).hash == hash


def test_models_lists_the_numbers_of_a_card(tmp_path):
    folder = save_tiny_model(tmp_path / "model")
    path = folder / "card.json"
    card = json.loads(path.read_text())
    card["reconstruction"] = {"field": {"mean": 0.9123, "tissues": {"Lu": 0.95, "Ca": 0.81}}, "held_out": 7}
    path.write_text(json.dumps(sealed(card)))
    said = CliRunner().invoke(app, ["models", str(folder), "--markdown"])
    assert said.exit_code == 0
    assert "| anatomy | coronary |" in said.output
    assert "| Dice field | 0.912 |" in said.output
    assert "| least | Ca 0.810 |" in said.output
    assert "| conv | - |" in said.output
