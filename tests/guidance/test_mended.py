"""What repair would change, and volumes that no patient has, are residuals that latent steps remove."""

from dataclasses import replace

import numpy as np
import pytest
import torch

from anatomica.generation.draw import decode
from anatomica.guidance.field_jacobian import jacobian
from anatomica.guidance.gauss_newton import Settings
from anatomica.guidance.mended import FARTHEST, WrongVoxels
from anatomica.guidance.polish import polish_mended
from anatomica.guidance.prediction import Prediction
from anatomica.guidance.usual_volumes import UsualVolumes
from anatomica.prior.zoo import Model, load_model
from tiny_prior import save_tiny_model


@pytest.fixture(scope="module")
def model(tmp_path_factory) -> Model:
    return load_model(save_tiny_model(tmp_path_factory.mktemp("model")))


@pytest.fixture
def z() -> torch.Tensor:
    return torch.randn(1, 3, 4, 4, 4, generator=torch.Generator().manual_seed(5))


def labels_of(model: Model, z: torch.Tensor) -> np.ndarray:
    label_map = decode(model, z, model.n)[0]
    return label_map.table.index[label_map.array]


def nearly_others(model: Model, z: torch.Tensor):
    """A repair that gives the eight voxels of the least margin to their second best label, and where."""
    line = (torch.arange(model.n) + 0.5) / model.n
    X = torch.stack(torch.meshgrid(line, line, line, indexing="ij"), -1).reshape(1, -1, 3)
    logits = model.autoencoder.field(model.scaler.restore(z), X)[0].detach()
    best, label = logits.topk(2, dim=-1)
    where = (best[:, 0] - best[:, 1]).topk(8, largest=False).indices.numpy()
    wanted = label[:, 1].numpy()[where]

    def mend(found: np.ndarray) -> np.ndarray:
        out = found.copy()
        out.reshape(-1)[where] = wanted
        return out

    return mend, where, wanted


def test_nothing_to_mend_changes_nothing(model: Model, z: torch.Tensor) -> None:
    model = replace(model, population=None)
    assert polish_mended(model, (), z, model.n, Settings(), lambda labels: labels) is not z
    assert torch.equal(polish_mended(model, (), z, model.n, Settings(), lambda labels: labels), z)


def test_the_latent_moves_until_the_map_is_mended(model: Model, z: torch.Tensor) -> None:
    model = replace(model, population=None)
    mend, where, wanted = nearly_others(model, z)
    moved = polish_mended(model, (), z, model.n, Settings(), mend)
    assert (labels_of(model, z).ravel()[where] != wanted).all()
    assert (labels_of(model, moved).ravel()[where] == wanted).all()
    assert (moved - z).square().mean().sqrt() < 0.5


def test_slopes_of_wrong_voxels(model: Model, z: torch.Tensor) -> None:
    """The derivative that steps use is that of the residuals."""
    mend, _, wanted = nearly_others(model, z)
    now = Prediction.of(model, z)
    wrong = WrongVoxels.of(now, model.n, mend)
    probe, tissues = wrong.probes(now)[0]
    assert len(wrong) == len(wanted)
    assert ((probe.rho <= -1) & (probe.rho >= -FARTHEST)).all(), "a wrong voxel is beyond one tolerance"
    J = jacobian(now, probe, tissues)[0]
    step = 1e-3 * torch.randn(z.shape, generator=torch.Generator().manual_seed(1))
    rhos = []
    for sign in (-1, 1):
        there = Prediction.of(model, z + sign * step)
        rhos.append(wrong.probes(there)[0][0].rho[0])
    free = probe.rho[0] > -FARTHEST
    assert free.any()
    found, expected = (rhos[1] - rhos[0])[free], 2 * (J @ step.flatten())[free]
    assert torch.allclose(found, expected, rtol=0.05, atol=2e-3 * expected.abs().max().item())


def test_usual_volumes_are_silent_between_their_limits(model: Model, z: torch.Tensor) -> None:
    now = Prediction.of(model, z)
    classes = len(model.table.names)
    assert UsualVolumes(torch.zeros(classes), torch.ones(classes)).probes(now) == []
    mass = torch.full((1, classes), 0.1)
    usual = UsualVolumes(torch.full((classes,), 0.2), torch.full((classes,), 0.3))
    assert usual.unusual(mass)
    assert not usual.unusual(torch.full((1, classes), 0.25))


@pytest.mark.parametrize("wanted", [0.5, 2.0])
def test_a_volume_beyond_its_limit_comes_back(model: Model, z: torch.Tensor, wanted: float) -> None:
    """One step along the residual's slope changes the volume in the right direction."""
    now = Prediction.of(model, z)
    P = UsualVolumes(torch.zeros(len(model.table.names)), torch.zeros(len(model.table.names)))
    soft = {t.selection[0]: float(p.rho[0, 0]) for p, t in P.probes(now)}
    assert soft, "with limits of zero every tissue that is there is beyond them"
    tissue = next(iter(soft))
    classes = len(model.table.names)
    mass = torch.zeros(1, classes)
    mass[0, tissue] = 0.1
    least, most = torch.zeros(classes), torch.ones(classes)
    (least if wanted > 1 else most)[tissue] = 0.1 * wanted
    ((probe, tissues),) = UsualVolumes(least, most).probes(now, mass)
    assert (probe.rho > 0).item() == (wanted < 1)
    J = jacobian(now, probe, tissues)[0, 0].view_as(z)
    down = -0.05 * probe.rho.sign() * J / J.norm()
    S = [
        Prediction.of(model, x).probability(probe.points, tissues, "sum", probe.temperature).sum()
        for x in (z, z + down)
    ]
    assert (S[1] > S[0]).item() == (wanted > 1)
