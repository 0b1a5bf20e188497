"""Bone, level and colours: the logits of a column's labels."""

from dataclasses import replace

import pytest
import torch

from anatomica.prior.autoencoder import Autoencoder, one_hot
from anatomica.prior.column import COLOURS, NUMBERS, ColumnInput, ColumnLayer, colour_of, column_logits
from anatomica.prior.presets import PRESETS

LEVELS = torch.arange(1.0, 25)
SURE = 12.0
"""A colour's logit above the others'."""


def numbers(bone: float, u: torch.Tensor, colour: torch.Tensor | None = None) -> torch.Tensor:
    """What a layer writes at points of these levels and colours (none: undecided)."""
    level = (u - LEVELS.mean()) / LEVELS.std()
    shown = torch.zeros(len(u), COLOURS)
    if colour is not None:
        shown[torch.arange(len(u)), colour] = SURE
    return torch.cat([torch.stack([torch.full_like(u, bone), level], -1), shown], -1)


def labels_of(written: torch.Tensor) -> torch.Tensor:
    return column_logits(written, LEVELS, colour_of(25)).argmax(-1)


def test_without_a_colour_only_neighbours_can_be_confused():
    u = torch.linspace(1.0, 24.0, 500)
    logits = column_logits(numbers(20.0, u), LEVELS, colour_of(25))[:, 1:]
    near = logits > logits.amax(1, keepdim=True) - 1e-4
    assert ((LEVELS - u[:, None]).abs()[near] <= 1.01).all()


@pytest.mark.parametrize("wrong_by", [-1.4, -0.5, 0.0, 0.5, 1.4])
def test_a_level_that_is_wrong_by_less_than_half_the_colours_changes_no_label(wrong_by):
    k = torch.arange(1, 25)
    found = labels_of(numbers(20.0, k + wrong_by, colour_of(25)))
    torch.testing.assert_close(found, k)


def test_without_bone_there_is_background():
    u = torch.linspace(0.6, 24.4, 50)
    assert (labels_of(numbers(-1.0, u)) == 0).all()
    assert (labels_of(numbers(-1.0, u, torch.zeros(50, dtype=torch.long))) == 0).all()


def test_neighbours_have_different_colours():
    colours = colour_of(25)
    for apart in range(1, COLOURS):
        assert (colours[apart:] != colours[:-apart]).all()


def test_a_wrong_level_pulls_no_harder_when_it_is_further_off():
    written = numbers(0.0, torch.tensor([5.0, 10.0, 23.0])).requires_grad_()
    logits = column_logits(written, LEVELS, colour_of(25))
    loss = torch.nn.functional.cross_entropy(logits, torch.tensor([1, 1, 1]), reduction="sum")
    (slope,) = torch.autograd.grad(loss, written)
    level = slope[:, 1]
    assert level.max() / level.min() < 1.6
    assert (level > 0).all()


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
        k = torch.tensor([3, 17])
        layer.linear.bias.copy_(numbers(9.0, k.float(), colour_of(25)[k - 1]).flatten())
    assert layer(torch.zeros(1, 2)).view(2, 25).argmax(-1).tolist() == [3, 17]


def test_the_encoder_sees_labels_and_shares_of_a_voxel_alike():
    labels = torch.randint(0, 25, (2, 4, 4, 4), generator=torch.Generator().manual_seed(0))
    seen = ColumnInput(25)
    torch.testing.assert_close(seen(labels), seen(one_hot(labels, 25)))


def test_a_window_three_vertebrae_further_down_differs_only_in_its_level():
    """The same bones of the same colours, and one step in the channel of levels."""
    labels = torch.randint(0, 22, (1, 4, 4, 4), generator=torch.Generator().manual_seed(1))
    bone = labels > 0
    here, down = ColumnInput(25)(labels), ColumnInput(25)(labels + COLOURS * bone)
    others = [0, *range(2, NUMBERS)]
    torch.testing.assert_close(here[:, others], down[:, others])
    steps = (down - here)[:, 1][bone]
    torch.testing.assert_close(steps, steps[:1].expand_as(steps))
    assert steps[0] > 0


def test_held_levels_and_colours_are_constants_and_bone_is_not():
    layer = ColumnLayer(3, 5)
    with torch.no_grad():
        layer.linear.weight[0] = 0  # the bone's row: what is left acts by level and colours only
    x = torch.randn(7, 3, requires_grad=True)
    assert torch.equal(layer(x), layer(x, held=True))
    (free,) = torch.autograd.grad(layer(x)[:, 1].sum(), x)
    (held,) = torch.autograd.grad(layer(x, held=True)[:, 1].sum(), x)
    assert free.abs().max() > 0
    assert held.abs().max() == 0
    (by_weight,) = torch.autograd.grad(layer(x, held=True)[:, 1].sum(), layer.linear.weight)
    assert by_weight[0].abs().max() > 0
    assert by_weight[1:].abs().max() == 0
