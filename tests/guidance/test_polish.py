"""The polish sees what the certificate sees, and never leaves a sample worse."""

import pytest
import torch

from anatomica.generation.draw import decode
from anatomica.guidance.gauss_newton import Settings
from anatomica.guidance.polish import certified_probes, certified_voxels, polish
from anatomica.guidance.prediction import Prediction
from anatomica.guidance.residuals import Probe
from anatomica.guidance.sub_voxel import measure_fine
from anatomica.guidance.topological_residuals import certified_topological_probe
from anatomica.measurement.certificate import certificate
from anatomica.measurement.homology import betti_numbers
from anatomica.measurement.parse import membership
from anatomica.measurement.placing import resolve
from anatomica.prior.zoo import Model, load_model
from anatomica.spec.quantities import BettiPrior
from anatomica.spec.yaml import parse_spec
from tiny_prior import save_tiny_model

DOMAINS = ("{family: global, grid: [16, 16, 16]}", "{family: global, grid: [12, 12, 12]}")


@pytest.fixture(scope="module")
def model(tmp_path_factory) -> Model:
    return load_model(save_tiny_model(tmp_path_factory.mktemp("model")))


def case(model: Model, domain: str, share: float = 1.1):
    """Latents, and constraints that ask for `share` times what the first one has of a tissue."""
    z = torch.randn(3, 3, 4, 4, 4, generator=torch.Generator().manual_seed(5))
    text = (
        "name: x\nanatomy: coronary\nconstraints:\n- name: one tissue\n  structure: [%s]\n  match: []\n"
        f"  domain: {domain}\n  mass_threshold: 1.0e-9\n"
        "  target: {volume_ml: %f, centroid_mm: [0, 0, 0]}\n"
    )
    first = decode(model, z[:1], model.n)[0]
    tissue = max(model.table.tissues, key=first.volume_ml)
    spec = parse_spec(text % (tissue, share * first.volume_ml(tissue)))
    return z, resolve(spec, model.frame)


@pytest.mark.parametrize("domain", DOMAINS)
def test_residuals_are_the_certificates(model: Model, domain: str) -> None:
    z, (r,) = case(model, domain)
    now = Prediction.of(model, z)
    voxels = certified_voxels(model, r, model.n)
    for sample, label_map in enumerate(decode(model, z, model.n)):
        probe, fine = certified_probes(now.sample(sample), r, voxels, Settings())
        volume, centroid = certificate(label_map, (r,), model.frame.anatomy)
        rho = probe.rho[0]
        assert rho[0].abs().item() == pytest.approx(volume.in_tolerances, rel=1e-3, abs=1e-3)
        assert rho[1:4].norm().item() == pytest.approx(centroid.in_tolerances, rel=1e-3, abs=1e-3)
        # The field's own residuals are of the same anatomy, without the rounding of a grid.
        assert fine.rho.shape == probe.rho.shape
        (measured,) = measure_fine(now.sample(sample), (r,), model.n)
        assert measured.moments is not None
        wanted = r.wanted.values["mass"].double()
        off = (measured.moments.mass - wanted) / (0.02 * wanted)
        assert fine.rho[0, 0].item() == pytest.approx(off.item(), rel=0.2, abs=1.5)


def test_no_sample_gets_worse_and_a_near_target_gets_closer(model: Model) -> None:
    z, resolved = case(model, DOMAINS[0])

    def error(z):
        now = Prediction.of(model, z)
        voxels = certified_voxels(model, resolved[0], model.n)
        own = (certified_probes(now.sample(i), resolved[0], voxels, Settings()) for i in range(len(z)))
        return torch.stack([torch.cat([p.rho.flatten() for p in both]).square().sum() for both in own])

    polished = polish(model, resolved, z, model.n, Settings(), steps=12)
    assert (error(polished) <= error(z)).all()
    assert error(polished)[0] < 0.5 * error(z)[0]
    assert torch.equal(polish(model, resolved, z, model.n, Settings(), steps=0), z)


def test_the_margins_level_one_half_is_the_argmax() -> None:
    logits = 3 * torch.randn(500, 5, generator=torch.Generator().manual_seed(0))
    inside = membership(logits, (1, 3), "margin", temperature=4.0) > 0.5
    assert torch.equal(inside, torch.isin(logits.argmax(-1), torch.tensor([1, 3])))


def level_probe(S: torch.Tensor, prior: BettiPrior) -> tuple[Probe, torch.Tensor]:
    """The label map's residuals of one volume, and the number of the voxel that each acts on."""
    r = (torch.arange(len(S)) + 0.5) / len(S)
    X = torch.stack(torch.meshgrid(r, r, r, indexing="ij"), dim=-1)
    probe = certified_topological_probe(S[None], X[None], prior)
    x, y, z = (probe.points[0] * len(S)).long().unbind(-1)
    return probe, (x * len(S) + y) * len(S) + z


@pytest.mark.parametrize("seed", range(20))
def test_residuals_beyond_one_are_features_too_many_or_too_few(seed: int) -> None:
    noise = torch.randn(1, 1, 12, 12, 12, generator=torch.Generator().manual_seed(seed))
    S = torch.sigmoid(8 * torch.nn.functional.avg_pool3d(noise, 3, 1, 1))[0, 0]
    counts = betti_numbers((S > 0.5).numpy())
    right = BettiPrior(b0=counts.b0, b1=counts.b1, b2=counts.b2)
    assert level_probe(S, right)[0].rho.shape[1] == 0
    wrong = BettiPrior(b0=counts.b0 + 1, b1=max(0, counts.b1 - 2), b2=counts.b2)
    probe, voxel = level_probe(S, wrong)
    assert int((probe.rho.abs() > 1).sum()) >= 1 + min(2, counts.b1)
    # Each residual's slope, a step of Newton on its own voxel, brings the level to the tolerance.
    logit = torch.logit(S.flatten()[voxel])
    slope = probe.slope[0, 0] * S.flatten()[voxel] * (1 - S.flatten()[voxel])
    assert torch.allclose((logit - probe.rho[0] / slope).abs(), torch.tensor(0.4), atol=1e-3)


@pytest.mark.parametrize("seed", range(8))
def test_hardly_a_voxel_has_to_rise_and_to_sink(seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """With every feature taking its nearer end it is 10 voxels and more of these volumes."""
    monkeypatch.setattr("anatomica.guidance.topological_residuals.CRITICAL", 1000)
    S = torch.sigmoid(torch.randn(12, 12, 12, generator=torch.Generator().manual_seed(seed)))
    probe, voxel = level_probe(S, BettiPrior(b0=1, b1=0, b2=0))
    up, down = (set(voxel[sign * probe.rho[0] > 0].tolist()) for sign in (-1, 1))
    assert len(up) > 50
    assert len(up & down) <= 2


def test_a_speck_between_decoded_points_is_seen(model: Model, monkeypatch: pytest.MonkeyPatch) -> None:
    text = "name: x\nanatomy: coronary\nconstraints:\n- name: one piece\n  structure: [Ca]\n  match: []\n"
    text += f"  domain: {DOMAINS[0]}\n  target: {{betti: {{b0: 1}}}}\n"
    (r,) = resolve(parse_spec(text), model.frame)
    exact = torch.full((1, 16, 16, 16), 0.1)
    exact[:, 2:5, 2:5, 2:5] = 0.9
    coarse = exact.clone()
    exact[:, 11, 11, 11] = 0.7
    monkeypatch.setattr(Prediction, "margin", lambda self, X, r, skip: coarse if skip else exact)
    voxels = certified_voxels(model, r, model.n)
    now = Prediction.of(model, torch.zeros(1, 3, 4, 4, 4))
    (probe,) = certified_probes(now, r, voxels, Settings())
    assert probe.rho[0].abs().max() > 1
