"""Bone and level: the logits of a column's labels."""

from dataclasses import replace

import pytest
import torch

from anatomica.prior.autoencoder import Autoencoder, one_hot
from anatomica.prior.column import ColumnInput, ColumnLayer, column_logits
from anatomica.prior.presets import PRESETS

LEVELS = torch.arange(1.0, 25)


def level_of(u: torch.Tensor) -> torch.Tensor:
    return (u - LEVELS.mean()) / LEVELS.std()


def test_the_label_is_the_nearest_level():
    u = torch.linspace(0.6, 24.4, 500)
    found = column_logits(torch.full_like(u, 20.0), level_of(u), LEVELS).argmax(-1)
    torch.testing.assert_close(found, u.round().clamp(1, 24).long())


def test_without_bone_there_is_background():
    u = torch.linspace(0.6, 24.4, 50)
    assert (column_logits(torch.full_like(u, -1.0), level_of(u), LEVELS).argmax(-1) == 0).all()


def test_only_neighbours_can_be_confused():
    """Wherever the level lies, the two likeliest vertebrae follow one another."""
    u = torch.empty(1000).uniform_(-3, 28, generator=torch.Generator().manual_seed(0))
    first, second = column_logits(torch.zeros_like(u), level_of(u), LEVELS)[:, 1:].topk(2).indices.T
    assert ((first - second).abs() == 1).all()


def test_a_wrong_level_pulls_no_harder_when_it_is_further_off():
    level = level_of(torch.tensor([3.0, 8.0, 23.0])).requires_grad_()
    logits = column_logits(torch.zeros(3), level, LEVELS)
    loss = torch.nn.functional.cross_entropy(logits, torch.tensor([1, 1, 1]), reduction="sum")
    (slope,) = torch.autograd.grad(loss, level)
    assert slope.max() / slope.min() < 1.3
    assert (slope > 0).all()


@pytest.mark.parametrize("name", ["small", "paper"])
def test_both_decoders_have_all_labels(name):
    sizes = replace(PRESETS[name].autoencoder, column=True)
    if name == "paper":
        sizes = replace(sizes, n=16, channels=(8, 16, 16))
    model = Autoencoder(25, sizes)
    z = torch.randn(1, 3, 4, 4, 4)
    n = 4 * sizes.factor
    assert model.decode_conv(z).shape == (1, 25, n, n, n)
    assert model.field(z, torch.rand(1, 7, 3)).shape == (1, 7, 25)


def test_each_place_of_a_patch_has_its_own_level():
    layer = ColumnLayer(2, 25, places=2)
    with torch.no_grad():
        layer.linear.weight.zero_()
        layer.linear.bias.copy_(
            torch.stack([torch.tensor([9.0, 9.0]), level_of(torch.tensor([3.0, 17.0]))], -1).flatten()
        )
    assert layer(torch.zeros(1, 2)).view(2, 25).argmax(-1).tolist() == [3, 17]


def test_the_encoder_sees_labels_and_shares_of_a_voxel_alike():
    labels = torch.randint(0, 25, (2, 4, 4, 4), generator=torch.Generator().manual_seed(0))
    seen = ColumnInput(25)
    torch.testing.assert_close(seen(labels), seen(one_hot(labels, 25)))


def test_a_window_further_down_differs_only_in_its_level():
    """The same bones one vertebra further down: the same first channel, and one step in the second."""
    labels = torch.randint(0, 24, (1, 4, 4, 4), generator=torch.Generator().manual_seed(1))
    bone = labels > 0
    here, down = ColumnInput(25)(labels), ColumnInput(25)(labels + bone)
    torch.testing.assert_close(here[:, 0], down[:, 0])
    steps = (down - here)[:, 1][bone]
    torch.testing.assert_close(steps, steps[:1].expand_as(steps))
    assert steps[0] > 0


def test_held_levels_are_constants_and_bone_is_not():
    layer = ColumnLayer(3, 5)
    with torch.no_grad():
        layer.linear.weight[0] = 0  # the bone's row: what is left acts by the level alone
    x = torch.randn(7, 3, requires_grad=True)
    assert torch.equal(layer(x), layer(x, held=True))
    (free,) = torch.autograd.grad(layer(x)[:, 1].sum(), x)
    (held,) = torch.autograd.grad(layer(x, held=True)[:, 1].sum(), x)
    assert free.abs().max() > 0
    assert held.abs().max() == 0
    (by_weight,) = torch.autograd.grad(layer(x, held=True)[:, 1].sum(), layer.linear.weight)
    assert by_weight[0].abs().max() > 0
    assert by_weight[1].abs().max() == 0
