"""The torch face: the same pairs, with gradients that reach exactly the voxels of each pair."""

import numpy as np
import pytest
import torch
from rivals import diagrams_of

from anatomica.errors import AnatomicaError
from anatomica.measurement.homology import persistence_pairs


def volumes(*shape, dtype=torch.float32) -> torch.Tensor:
    return torch.rand(*shape, generator=torch.Generator().manual_seed(0), dtype=dtype)


@pytest.mark.parametrize("construction", ["V", "T"])
def test_same_pairs_as_numpy(construction):
    S = volumes(3, 6, 7, 8)
    pairs = persistence_pairs(S, construction=construction, min_persistence=0.1)
    for number, diagram in enumerate(diagrams_of(S.numpy(), construction=construction, min_persistence=0.1)):
        rows = pairs.batch == number
        for name in diagram._fields:
            assert np.array_equal(getattr(pairs, name)[rows].numpy(), getattr(diagram, name))


def test_gradient_of_total_persistence():
    """d/dS of the summed persistence is +1 at each birth voxel and -1 at each death voxel."""
    S = volumes(2, 5, 5, 5, dtype=torch.float64).requires_grad_()
    pairs = persistence_pairs(S)
    pairs.persistence.sum().backward()
    expected = torch.zeros(2, 125, dtype=torch.float64)
    ones = torch.ones(len(pairs.batch), dtype=torch.float64)
    expected.index_put_((pairs.batch, pairs.birth_voxel), ones, accumulate=True)
    expected.index_put_((pairs.batch, pairs.death_voxel), -ones, accumulate=True)
    assert S.grad is not None
    assert torch.equal(S.grad, expected.view(2, 5, 5, 5))


def test_gradcheck():
    S = volumes(1, 3, 4, 4, dtype=torch.float64).requires_grad_()
    assert torch.autograd.gradcheck(lambda s: persistence_pairs(s).persistence.square().sum(), (S,))


def test_clamped_pairs_carry_gradients():
    S = torch.sigmoid(
        8 * torch.randn(1, 8, 8, 8, generator=torch.Generator().manual_seed(1))
    ).requires_grad_()
    pairs = persistence_pairs(S, clamp=0.05)
    assert torch.equal(pairs.birth, S.flatten(1)[0, pairs.birth_voxel])
    (gradient,) = torch.autograd.grad(pairs.birth.sum(), S)
    assert gradient.flatten()[pairs.birth_voxel].min() >= 1


def test_top_features_of_each_dimension():
    pairs = persistence_pairs(volumes(2, 9, 9, 9), top=4)
    for number in range(2):
        for dim in range(3):
            rows = (pairs.batch == number) & (pairs.dim == dim)
            assert rows.sum() == 4
            assert (pairs.persistence[rows].diff() <= 0).all()


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16])
def test_half_precision(dtype):
    S = volumes(1, 6, 6, 6).to(dtype)
    pairs = persistence_pairs(S)
    assert pairs.birth.dtype == dtype
    assert torch.equal(pairs.birth, S.flatten(1)[0, pairs.birth_voxel])


def test_views_empty_batches_and_nan():
    S = volumes(2, 6, 7, 8).permute(0, 3, 1, 2)
    assert torch.equal(persistence_pairs(S).birth, persistence_pairs(S.contiguous()).birth)
    assert len(persistence_pairs(torch.zeros(0, 4, 4, 4)).batch) == 0
    with pytest.raises(AnatomicaError, match="value nan"):
        persistence_pairs(torch.full((1, 2, 2, 2), float("nan")))
