"""Guided columns keep whole levels: they are made whole before a step in little noise, and not in much."""

import torch

from anatomica.guidance.gauss_newton import SETTLED, gauss_newton
from anatomica.prior.whole_levels import unsettled
from anatomica.prior.zoo import load_model


def test_levels_are_made_whole_in_little_noise_only() -> None:
    model = load_model("spinal")
    field, scaler = model.autoencoder.field, model.scaler
    noise = torch.randn(1, *model.latent_shape, generator=torch.Generator().manual_seed(3))
    with torch.no_grad():
        z = model.denoiser(8.0 * noise, torch.tensor([8.0]))  # between windows, so between levels
    points = torch.rand(1, 8000, 3, generator=torch.Generator().manual_seed(4))

    def error(latent: torch.Tensor) -> float:
        bone, level = field.column_at(field.prepare(scaler.restore(latent)), points)
        return float(unsettled(level[bone > 1]))

    correct = gauss_newton(model, ())
    with torch.no_grad():
        settled = correct(z, torch.tensor([SETTLED]))
        assert error(settled) < 0.9 * error(z)
        before = error(correct(z, torch.tensor([2 * SETTLED])))
    assert abs(before - error(z)) < 1e-6
