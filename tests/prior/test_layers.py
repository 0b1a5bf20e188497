"""bf16 on a CPU has its own paths through the layers; they compute what the float32 ones do."""

import copy

import pytest
import torch
from torch import nn

from anatomica.prior.layers import Attention, group_norm


@pytest.mark.parametrize("layer", [Attention(16, heads=2), group_norm(16)], ids=["attention", "group norm"])
def test_bf16_and_its_gradient_are_those_of_float32(layer: nn.Module) -> None:
    x, weights = torch.randn(2, 2, 16, 4, 4, 4, generator=torch.Generator().manual_seed(0))
    outputs, gradients = [], []
    for bf16 in (False, True):
        one, leaf = copy.deepcopy(layer), x.clone().requires_grad_()
        with torch.autocast("cpu", torch.bfloat16, enabled=bf16):
            y = one(leaf.bfloat16() if bf16 else leaf)
        (weights * y.float()).sum().backward()
        outputs.append(y.detach().float())
        gradients.append(leaf.grad)
    assert outputs[1].sub(outputs[0]).abs().max() < 0.03 * outputs[0].abs().max()
    assert gradients[1].sub(gradients[0]).abs().max() < 0.03 * gradients[0].abs().max()


def test_group_norm_keeps_the_precision_of_its_input() -> None:
    x = torch.randn(1, 8, 2, 2, 2)
    with torch.autocast("cpu", torch.bfloat16):
        assert group_norm(8)(x.bfloat16()).dtype == torch.bfloat16
