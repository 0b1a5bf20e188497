"""Muon: which parameters it takes, what its step is, and that it learns faster than Adam where it should."""

from __future__ import annotations

import pytest
import torch
from torch import nn

from anatomica.prior.autoencoder import Autoencoder
from anatomica.prior.edm import build_denoiser
from anatomica.prior.training.muon import UPDATE_RMS, Muon, orthogonalised
from tiny_prior import TINY


@pytest.mark.parametrize("shape", [(24, 216), (216, 24), (40, 40), (1, 7)])
def test_singular_values_become_one(shape: tuple[int, int]) -> None:
    matrix = torch.randn(shape, generator=torch.Generator().manual_seed(3)) * 1e-4
    made = orthogonalised(matrix)
    values = torch.linalg.svdvals(made)
    # A square Gaussian matrix has singular values near 0, which five steps cannot lift all the way.
    assert values.max() < 1.3
    assert values.median() > 0.6
    left, _, right = torch.linalg.svd(matrix, full_matrices=False)
    assert torch.trace(left.T @ made @ right.T) > 0.6 * min(shape)


def test_a_zero_gradient_is_no_step() -> None:
    assert torch.equal(orthogonalised(torch.zeros(3, 5)), torch.zeros(3, 5))


def test_biases_norms_and_last_layers_stay_with_adam() -> None:
    for model in (Autoencoder(4, TINY.autoencoder), build_denoiser(3, 4, TINY.unet, TINY.edm)):
        others, matrices = Muon(model, model.last_layers(), lr=1e-3).param_groups
        last = {id(p) for layer in model.last_layers() for p in layer.parameters()}
        assert last
        assert last <= {id(p) for p in others["params"]}
        assert all(p.ndim >= 2 for p in matrices["params"])
        assert len(others["params"]) + len(matrices["params"]) == len(list(model.parameters()))


def test_first_step_is_orthogonal_with_the_stated_size() -> None:
    layer, head = nn.Linear(30, 20), nn.Linear(20, 2)
    before = layer.weight.detach().clone()
    optimizer = Muon(nn.Sequential(layer, head), (head,), lr=0.1, weight_decay=0.0)
    gradient = torch.randn(20, 30, generator=torch.Generator().manual_seed(1))
    layer.weight.grad = gradient.clone()
    optimizer.step()
    step = layer.weight.detach() - before
    torch.testing.assert_close(
        step, -0.1 * UPDATE_RMS * 30**0.5 * orthogonalised(gradient), rtol=0, atol=1e-6
    )
    assert step.square().mean().sqrt().item() == pytest.approx(0.1 * UPDATE_RMS, rel=0.3)


def test_fits_an_ill_conditioned_problem_sooner_than_plain_momentum() -> None:
    """Inputs, in random directions, that differ in size by 1,000: the small ones are what is learned late."""
    random = torch.Generator().manual_seed(0)
    turn = torch.linalg.qr(torch.randn(16, 16, generator=random))[0]
    inputs = (torch.randn(256, 16, generator=random) * torch.logspace(0, -3, 16)) @ turn
    goal = torch.randn(16, 16, generator=random)

    def error(muon: bool) -> float:
        layer = nn.Linear(16, 16, bias=False)
        nn.init.zeros_(layer.weight)
        optimizer = Muon(layer, (), lr=0.1) if muon else torch.optim.SGD(layer.parameters(), 0.1, 0.9)
        for step in range(200):
            for group in optimizer.param_groups:
                group["lr"] = 0.1 * (1 - step / 200)
            optimizer.zero_grad()
            ((layer(inputs) - inputs @ goal.T) ** 2).sum(1).mean().backward()
            optimizer.step()
        return ((layer.weight.detach() - goal) ** 2).mean().item()

    assert error(muon=True) < 0.5 * error(muon=False)
