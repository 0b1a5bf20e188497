"""Levels of a column come nearer to whole numbers."""

from dataclasses import replace

import pytest
import torch

from anatomica.prior.autoencoder import Autoencoder
from anatomica.prior.edm import LatentScaler
from anatomica.prior.latent_gaussian import LatentGaussian
from anatomica.prior.presets import PRESETS
from anatomica.prior.whole_levels import settle_levels, unsettled

SMALL = PRESETS["small"].autoencoder


@pytest.fixture(scope="module")
def column() -> Autoencoder:
    """An untrained field that has bone everywhere, at levels that vary by a part of a vertebra."""
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(0)
        model = Autoencoder(25, replace(SMALL, column=True)).eval().requires_grad_(False)
    layer = model.field.mlp[-1]
    with torch.no_grad():
        layer.linear.bias[0] = 9.0  # type: ignore[union-attr, index]
        layer.linear.weight[0] = 0.0  # type: ignore[union-attr, index]
        layer.linear.bias[1] = 0.3 / 7.07  # type: ignore[union-attr, index]
        layer.linear.weight[1].mul_(0.05)  # type: ignore[union-attr, index]
    return model


def latents(count: int) -> torch.Tensor:
    """Smooth ones, as a column's are."""
    return torch.randn(count, 3, 1, 1, 1, generator=torch.Generator().manual_seed(1)).repeat(1, 1, 8, 8, 8)


def scaler() -> LatentScaler:
    return LatentScaler(3).fit(latents(4))


def error(model: Autoencoder, z: torch.Tensor) -> float:
    points = torch.rand(1, 4000, 3, generator=torch.Generator().manual_seed(5))
    field = model.field
    return float(unsettled(field.column_at(field.prepare(scaler().restore(z)), points)[1]))


def test_levels_come_nearer_to_whole_ones_at_points_that_were_not_looked_at(column: Autoencoder) -> None:
    z = latents(1)
    settled = settle_levels(column, scaler(), None, z)
    assert error(column, settled) < 0.85 * error(column, z)


def test_a_sample_does_not_depend_on_its_batch(column: Autoencoder) -> None:
    z = latents(2)
    together = settle_levels(column, scaler(), None, z)
    torch.testing.assert_close(together[1:], settle_levels(column, scaler(), None, z[1:]))


def test_the_change_is_along_what_varies_in_patients(column: Autoencoder) -> None:
    """A Gaussian with one direction that varies: nearly all of the change is along it."""
    z = latents(1)
    size = z[0].numel()
    gaussian = LatentGaussian(1, size)
    direction = torch.ones(size) / size**0.5
    gaussian.basis.copy_(direction[None])
    gaussian.variance.fill_(1e3)
    gaussian.rest.fill_(1e-6)
    moved = (settle_levels(column, scaler(), gaussian, z) - z).flatten()
    assert abs(float(moved @ direction)) > 0.99 * float(moved.norm())


def test_other_anatomies_stay_as_they_are() -> None:
    model = Autoencoder(4, SMALL)
    z = latents(1)
    assert settle_levels(model, scaler(), None, z) is z


def test_unsettled_has_its_closed_form() -> None:
    assert float(unsettled(torch.tensor([1.0, 7.0]))) == pytest.approx(0, abs=1e-5)
    assert float(unsettled(torch.tensor([0.5, 3.5]))) == pytest.approx(2, abs=1e-5)
    assert float(unsettled(torch.linspace(0, 1, 1001)[:-1])) == pytest.approx(1, abs=1e-3)
