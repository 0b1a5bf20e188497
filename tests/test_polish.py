"""The polish sees what the certificate sees, and never leaves a sample worse."""

import pytest
import torch

from anatomica.certify import certify
from anatomica.frame import Frame
from anatomica.gauss_newton import Settings
from anatomica.generation import decode
from anatomica.labels import anatomy
from anatomica.measurement import measure_cube
from anatomica.models.zoo import Model, load_model
from anatomica.parse import membership
from anatomica.polish import certified_probes, polish
from anatomica.resolve import resolve
from anatomica.spec_yaml import parse_spec
from tiny_prior import save_tiny_model

DOMAINS = ("{family: global, grid: [16, 16, 16]}", "{family: global, grid: [12, 12, 12]}")


@pytest.fixture(scope="module")
def model(tmp_path_factory) -> Model:
    return load_model(save_tiny_model(tmp_path_factory.mktemp("model")))


def case(model: Model, domain: str, share: float = 1.1):
    """Latents, a spec that asks for `share` times what the first one has of a tissue, and its constraints."""
    z = torch.randn(3, 3, 4, 4, 4, generator=torch.Generator().manual_seed(5))
    text = (
        "name: x\nanatomy: coronary\nconstraints:\n- name: one tissue\n  structure: [%s]\n  match: []\n"
        f"  domain: {domain}\n  mass_threshold: 1.0e-9\n"
        "  target: {volume_ml: %f, centroid_mm: [0, 0, 0]}\n"
    )
    frame = Frame.model(anatomy("coronary"), model.n)
    first = decode(model, z[:1], model.n)[0]
    tissue = max(model.table.tissues, key=first.volume_ml)
    spec = parse_spec(text % (tissue, share * first.volume_ml(tissue)))
    return z, spec, resolve(spec, frame), frame


@pytest.mark.parametrize("domain", DOMAINS)
def test_residuals_are_the_certificates(model: Model, domain: str) -> None:
    z, spec, (r,), frame = case(model, domain)
    features = model.autoencoder.field.prepare(model.scaler.restore(z))
    (probe,) = certified_probes(model, r, frame, features, model.n, Settings())
    for sample, label_map in enumerate(decode(model, z, model.n)):
        volume, centroid = certify(measure_cube(label_map, spec, (r,)), (r,))
        rho = probe.rho[sample]
        assert rho[0].abs().item() == pytest.approx(volume.in_tolerances, rel=1e-3, abs=1e-3)
        assert rho[1:4].norm().item() == pytest.approx(centroid.in_tolerances, rel=1e-3, abs=1e-3)


def test_no_sample_gets_worse_and_a_near_target_gets_closer(model: Model) -> None:
    z, _, resolved, frame = case(model, DOMAINS[0])

    def error(z):
        features = model.autoencoder.field.prepare(model.scaler.restore(z))
        (probe,) = certified_probes(model, resolved[0], frame, features, model.n, Settings())
        return probe.rho.square().sum(1)

    polished = polish(model, resolved, z, model.n, Settings(), steps=12)
    assert (error(polished) <= error(z)).all()
    assert error(polished)[0] < 0.5 * error(z)[0]
    assert torch.equal(polish(model, resolved, z, model.n, Settings(), steps=0), z)


def test_the_margins_level_one_half_is_the_argmax() -> None:
    logits = 3 * torch.randn(500, 5, generator=torch.Generator().manual_seed(0))
    inside = membership(logits, (1, 3), "margin", temperature=4.0) > 0.5
    assert torch.equal(inside, torch.isin(logits.argmax(-1), torch.tensor([1, 3])))
