"""Errors while sampling: the numbers that the moments give, and curves that end with the finished sample."""

import math

import numpy as np
import pytest
import torch

from anatomica.generation.draw import decode, generate
from anatomica.generation.options import Options
from anatomica.generation.resolve import constraints_for
from anatomica.generation.sample import Progress
from anatomica.guidance.substructures import parser
from anatomica.guidance.trace import coarser, see
from anatomica.measurement.homology import betti_numbers
from anatomica.measurement.moments import measure_moments
from anatomica.prior.zoo import Model, load_model
from anatomica.spec.yaml import parse_spec
from tiny_prior import save_tiny_model

SPEC = parse_spec(
    "name: x\nanatomy: coronary\nconstraints:\n"
    "- {name: wall, structure: [Ve], domain: {family: global, grid: [8, 8, 8]},"
    " target: {mass: 0.3, centroid: [0.5, 0.5, 0.6]}}\n"
    "- {name: pieces, structure: [Ve], domain: {family: global, grid: [8, 8, 8]}, target: {betti: {b0: 2}}}\n"
)


@pytest.fixture(scope="module")
def model(tmp_path_factory) -> Model:
    return load_model(save_tiny_model(tmp_path_factory.mktemp("watch") / "model"))


def test_errors_are_those_of_the_moments_and_of_the_label_map(model: Model) -> None:
    resolved = constraints_for(model, SPEC)
    z = torch.randn(2, *model.latent_shape, generator=torch.Generator().manual_seed(0))
    m = measure_moments(parser(model, resolved[:1], union="sum")(z)[0].double(), resolved[0].domains)
    for sample, (seen, finished) in enumerate(zip(see(model, resolved, z), decode(model, z, 8), strict=True)):
        volume, centroid, topology = seen.errors
        assert volume.error == pytest.approx(100 * abs(m.mass[sample, 0].item() - 0.3) / 0.3, rel=1e-3)
        off = np.linalg.norm(m.centroid[sample, 0].numpy() - [0.5, 0.5, 0.6]) * 12.8
        assert centroid.error == pytest.approx(off, rel=1e-3)
        pieces = betti_numbers(finished.mask("Ve")).b0
        assert (topology.constraint, topology.error) == ("pieces", abs(pieces - 2))


def test_diagrams_count_what_the_label_map_has(model: Model) -> None:
    resolved = constraints_for(model, SPEC)
    z = torch.randn(1, *model.latent_shape, generator=torch.Generator().manual_seed(1))
    (seen,) = see(model, resolved, z, diagrams=True)
    (one,) = seen.diagrams
    (finished,) = decode(model, z, 8)
    assert one.diagram.betti(0.5) == betti_numbers(finished.mask("Ve"))
    assert one.wanted == (2, None, None)
    assert {p["dim"] for p in one.to_dict()["pairs"]} <= {0, 1, 2}


def test_curves_follow_the_steps_and_the_callback_sees_them(model: Model) -> None:
    seen: list[Progress] = []
    (sample,) = generate(
        model, SPEC, seeds=[3], options=Options(steps=10, tries=1, trace=True), callback=seen.append
    )
    assert [p.step.index for p in seen] == list(range(10))
    assert seen[0].seeds == (3,)
    curves = {c.quantity: c for c in sample.curves}
    assert set(curves) == {"volume", "centroid", "topology"}
    assert curves["volume"].steps == tuple(range(1, 12))
    assert curves["topology"].steps[-1] == 11
    assert len(curves["topology"].steps) <= 10
    assert curves["volume"].errors[4] == seen[4].errors[0][0].error
    assert all(math.isfinite(e) for c in sample.curves for e in c.errors)
    assert len(sample.diagrams) == 1
    (plain,) = generate(model, SPEC, seeds=[3], options=Options(steps=10, tries=1))
    assert plain.curves == ()
    np.testing.assert_array_equal(plain.label_map.array, sample.label_map.array)


def test_grids_are_thinned_to_few_points() -> None:
    assert coarser((8, 8, 8), 1) == (8, 8, 8)
    assert coarser((64, 64, 64), 1) == (16, 16, 16)
    assert coarser((1, 32, 32), 16) == (1, 16, 16)
    assert math.prod(coarser((4, 32, 32), 5)) * 5 <= 4096 * 1.3
