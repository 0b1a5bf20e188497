"""What the prior would redraw of a label map."""

import numpy as np
import pytest
import torch

from anatomica.data.phantoms import phantom
from anatomica.evaluate.spoil import blob_apart
from anatomica.generation.plausibility import Redrawn, redrawn_places
from anatomica.prior.redraw import SIGMAS, redraw_limits, redrawn
from anatomica.prior.zoo import Model, load_model


@pytest.fixture(scope="module")
def model() -> Model:
    return load_model("coronary")


@pytest.fixture(scope="module")
def patients(model: Model) -> torch.Tensor:
    made = [phantom("coronary", seed, model.n).label_map for seed in range(900_000, 900_004)]
    return torch.from_numpy(np.stack([m.table.index[m.array] for m in made]))


def test_a_blob_is_redrawn_and_a_patient_is_not(model: Model, patients: torch.Tensor) -> None:
    parts = model.autoencoder, model.denoiser, model.scaler
    odd = blob_apart(patients[0].numpy(), np.random.default_rng(0))
    assert odd is not None
    alone = redrawn(*parts, patients[:1])
    with_blob = redrawn(*parts, torch.from_numpy(odd)[None])
    assert with_blob.shape == (1, len(SIGMAS))
    assert with_blob[0, 1] > 1.5 * alone[0, 1]


def test_each_patient_is_judged_for_itself(model: Model, patients: torch.Tensor) -> None:
    parts = model.autoencoder, model.denoiser, model.scaler
    together = redrawn(*parts, patients)
    each = torch.cat([redrawn(*parts, one[None]) for one in patients])
    torch.testing.assert_close(together, each, atol=0.01, rtol=0)


def test_the_card_keeps_the_limits(model: Model, patients: torch.Tensor) -> None:
    limits = redraw_limits(model.autoencoder, model.denoiser, model.scaler, patients)
    assert list(limits) == ["0", "0.7", "1.5"]
    model.card["redrawn"], before = limits, model.card.get("redrawn")
    try:
        assert redrawn_places(model, model.label_map(patients[1].numpy())) == ()
        odd = blob_apart(patients[0].numpy(), np.random.default_rng(0))
        assert odd is not None
        (found,) = redrawn_places(model, model.label_map(odd))
        assert isinstance(found, Redrawn)
        assert "the prior would redraw" in str(found)
        model.card["redrawn"] = None
        assert redrawn_places(model, model.label_map(odd)) == ()
    finally:
        model.card["redrawn"] = before
