"""The private form of a model folder: statistics of the population, and nothing of any one patient."""

import json

import numpy as np
import pytest
import torch
from safetensors.torch import load

from anatomica.anatomy.catalogue import anatomy
from anatomica.errors import AnatomicaError
from anatomica.generation.plausibility import unusual_tissues
from anatomica.prior.gaussian_population import FEATURES, fit_gaussian
from anatomica.prior.population import population_moments, union_moments
from anatomica.prior.zoo import load_model, save_model
from tiny_prior import TINY, ellipsoids, save_tiny_model

CLASSES = len(anatomy("coronary").table)


@pytest.fixture(scope="module")
def population() -> torch.Tensor:
    """120 patients; every fourth lacks the innermost tissue."""
    maps = ellipsoids(120)
    maps[::4] = maps[::4].where(maps[::4] != 3, 2)
    return population_moments(maps, CLASSES)


def test_made_up_patients_have_the_statistics_of_the_real_ones(population) -> None:
    made = fit_gaussian(population).patients()
    assert made.shape == population.shape
    real_share, share = ((x[:, 1:, 0] > 0).double().mean(0) for x in (population, made))
    assert torch.equal(share, real_share)
    for tissues in ([1], [1, 2], [3]):
        real, drawn = union_moments(population, tissues), union_moments(made, tissues)
        assert float(drawn[0].mean()) == pytest.approx(float(real[0].mean()), rel=0.05)
        assert float(drawn[0].std()) == pytest.approx(float(real[0].std()), rel=0.5)
        torch.testing.assert_close(drawn[1].mean(0), real[1].mean(0), atol=0.01, rtol=0)
        torch.testing.assert_close(drawn[2].mean(0), real[2].mean(0), atol=2e-3, rtol=0.1)
    low, high = np.percentile(population[:, 1, 0], [1, 99])
    assert made[:, 1, 0].min() >= low * 0.999
    assert made[:, 1, 0].max() <= high * 1.001
    again = fit_gaussian(population).patients()
    assert torch.equal(again.nan_to_num(-1.0), made.nan_to_num(-1.0))  # NaN: what a patient does not have


def test_a_private_folder_keeps_no_patient(population, tmp_path) -> None:
    model = load_model(save_tiny_model(tmp_path / "open"))
    parts = (model.autoencoder, model.denoiser, model.scaler, TINY.unet, TINY.sampling)
    folder = save_model(tmp_path / "private", model.about, *parts, {}, population, private=True)
    assert json.loads((folder / "card.json").read_text())["private"] is True
    kept = load((folder / "population.safetensors").read_bytes())
    size = FEATURES * (CLASSES - 1)
    assert {tuple(x.shape) for x in kept.values()} == {
        (size,),
        (size, size),
        (CLASSES - 1,),
        (CLASSES - 1, 2),
        (1,),
    }
    found = load_model(folder)
    assert found.population is not None
    assert len(found.population) == len(population)
    # What it is for: a patient's volumes are usual, none of a tissue that all have is not.
    label_map = found.label_map(ellipsoids(1)[0].numpy())
    assert unusual_tissues(found, label_map) == ()
    assert unusual_tissues(found, found.label_map(np.zeros((16, 16, 16), np.uint8)))


def test_too_few_patients_are_refused(population) -> None:
    with pytest.raises(AnatomicaError, match="at least 20 patients, here are 19"):
        fit_gaussian(population[:19])
