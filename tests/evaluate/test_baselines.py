"""Baselines: conditions against closed forms, a start that changes nothing, training that reads them."""

import dataclasses

import numpy as np
import pytest
import torch

from anatomica.anatomy.label_map import LabelMap, cube_affine
from anatomica.errors import AnatomicaError
from anatomica.evaluate.baselines.conditioned import (
    Ranges,
    channels,
    explicit_condition,
    implicit_condition,
    load_baseline,
    task_moments,
    widen,
)
from anatomica.evaluate.baselines.training import train_baseline, tuning
from anatomica.measurement.moments import Moments
from anatomica.prior.training.budget import Budget
from anatomica.prior.training.train import RunOptions
from anatomica.prior.unet import UNet
from anatomica.prior.zoo import load_model
from anatomica.spec.tasks import task
from tiny_prior import TINY, ellipsoids, save_tiny_model

TASK = "multiscale-vessel-small"


def moments(b: int = 1, k: int = 1) -> Moments:
    covariance = torch.diag(torch.tensor([0.04, 0.01, 0.01], dtype=torch.float64)).expand(b, k, 3, 3)
    return Moments(
        torch.full((b, k), 0.2).double(), torch.full((b, k, 3), 0.5, dtype=torch.float64), covariance
    )


def test_explicit_condition_is_the_normalised_vector_everywhere() -> None:
    G = explicit_condition(
        moments(2, 2),
        torch.tensor([[True, True], [True, False]]),
        Ranges((0.1, 0.3), (0.0, 1.0), (0.0, 0.04)),
        4,
    )
    assert G.shape == (2, 26, 4, 4, 4)
    expected = [0.5, 0.5, 0.5, 0.5, 1, 0, 0, 0, 0.25, 0, 0, 0, 0.25]
    assert G[0, :13, 1, 2, 3].tolist() == pytest.approx(expected)
    assert (G[0] == G[0, :, :1, :1, :1]).all()
    assert (G[1, 13:] == 0).all()
    assert channels("explicit", 2) == 26
    assert channels("implicit", 2) == 2


def test_implicit_condition_is_half_on_the_ellipsoid() -> None:
    n = 64
    G = implicit_condition(moments(), torch.ones(1, 1, dtype=torch.bool), n)[0, 0]
    centre = n // 2
    along = G[:, centre, centre]
    # Along x the semi-axis is sqrt(5 * 0.04): the map crosses 1/2 there, within half a voxel.
    crossing = (torch.nonzero(along > 0.5)[-1] + 1.0) / n - 0.5
    assert float(crossing) == pytest.approx(np.sqrt(5 * 0.04), abs=1 / n)
    assert G.min() > 0
    assert G.max() == pytest.approx(torch.sigmoid(torch.tensor(5.0).sqrt()).item(), abs=0.03)
    flat = dataclasses.replace(moments(), covariance=torch.zeros(1, 1, 3, 3, dtype=torch.float64))
    assert implicit_condition(flat, torch.ones(1, 1, dtype=torch.bool), 8).isfinite().all()
    assert (implicit_condition(flat, torch.zeros(1, 1, dtype=torch.bool), 8) == 0).all()


def test_new_channels_do_nothing_at_first() -> None:
    network = UNet(3, 4, TINY.unet, 3)
    torch.nn.init.normal_(network.out.weight)
    z, noise = torch.randn(2, 3, 4, 4, 4), torch.zeros(2)
    before = network(z, noise)
    wide = widen(network, 5)
    torch.testing.assert_close(wide(torch.cat([z, torch.randn(2, 5, 4, 4, 4)], 1), noise), before)


def test_moments_of_a_map_are_those_of_its_own_domains(tmp_path) -> None:
    model = load_model(save_tiny_model(tmp_path / "model"))
    array = ellipsoids(1)[0].numpy()
    found, valid = task_moments(LabelMap(array, cube_affine(12.8, 16), model.table), task(TASK))
    assert found.mass.shape == valid.shape == (16,)
    assert valid.any()
    assert (found.mass[valid] > 0).all()


def test_training_learns_to_read_the_condition_and_resumes(tmp_path) -> None:
    model, labels = load_model(save_tiny_model(tmp_path / "model")), ellipsoids(12)
    training = dataclasses.replace(tuning(model, False), batch=4, lr=5e-3)
    out, quiet = tmp_path / "baselines", RunOptions(quiet=True)
    made = train_baseline(model, labels, TASK, "implicit", out, Budget(steps=12), quiet, training=training)
    again = train_baseline(
        model,
        labels,
        TASK,
        "implicit",
        out,
        Budget(steps=12),
        RunOptions(quiet=True, resume=True),
        training=training,
    )
    assert again.hash == made.hash
    rows = [
        task_moments(LabelMap(m.numpy(), cube_affine(12.8, 16), model.table), task(TASK)) for m in labels[:2]
    ]
    target = Moments(
        *(torch.stack([getattr(m, key) for m, _ in rows]) for key in ("mass", "centroid", "covariance"))
    )
    valid = torch.stack([v for _, v in rows])
    z, sigma = torch.randn(2, 3, 4, 4, 4), torch.ones(2)
    with torch.no_grad():
        given = made.denoiser(target, valid)(z, sigma)
        without = made.denoiser(target, torch.zeros_like(valid))(z, sigma)
    assert given.isfinite().all()
    assert (given - without).abs().max() > 1e-5


def test_a_baseline_belongs_to_its_model(tmp_path) -> None:
    model, labels = load_model(save_tiny_model(tmp_path / "model")), ellipsoids(4)
    out = tmp_path / "baselines"
    training = dataclasses.replace(tuning(model, True), batch=2)
    train_baseline(
        model, labels, TASK, "explicit", out, Budget(steps=1), RunOptions(quiet=True), True, training
    )
    with pytest.raises(AnatomicaError, match="train it again"):
        load_baseline(out / f"{TASK}-explicit", dataclasses.replace(model, hash="other"))
    with pytest.raises(AnatomicaError, match="is about cardiac anatomy"):
        train_baseline(model, labels, "right-ventricle", "explicit", out, Budget(steps=1))
