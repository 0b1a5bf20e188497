"""Targets beside the training population: inside, outside, the nearest feasible one, what is not compared."""

import dataclasses

import numpy as np
import pytest
import torch

from anatomica.generation.feasibility import compare
from anatomica.generation.resolve import resolve_for
from anatomica.prior.population import population_moments, union_moments
from anatomica.prior.zoo import Model, load_model
from anatomica.spec.yaml import parse_spec
from tiny_prior import ellipsoids, save_tiny_model


@pytest.fixture(scope="module")
def model(tmp_path_factory) -> Model:
    return load_model(save_tiny_model(tmp_path_factory.mktemp("population") / "model", patients=80))


def spec(target: str, domain: str = "{family: global, grid: [8, 8, 8]}", structure: str = "[Lu]"):
    return parse_spec(
        f"name: x\nanatomy: coronary\nconstraints:\n- name: c\n  structure: {structure}\n  match: []\n"
        f"  domain: {domain}\n  target: {target}\n"
    )


def ask(model: Model, target: str, *more: str):
    return compare(model, resolve_for(model, spec(target, *more)))


def test_the_populations_own_mean_is_inside(model: Model) -> None:
    assert model.population is not None
    mass, centroid, _ = union_moments(model.population, [1])
    place = [round(x, 6) for x in centroid.mean(0).tolist()]
    (c,) = ask(model, f"{{mass: {mass.mean().item()}, centroid: {place}}}")
    assert c.patients == 80
    assert c.distance < 0.5
    assert not c.outside
    assert c.nearest["volume_ml"] == pytest.approx(c.requested["volume_ml"])


def test_the_distance_of_one_quantity_is_its_z_score(model: Model) -> None:
    assert model.population is not None
    logs = union_moments(model.population, [1])[0].log().numpy()
    width = np.sqrt(logs.var(ddof=1) + 0.02**2)
    (c,) = ask(model, f"{{mass: {np.exp(logs.mean() + 4 * width)}}}")
    assert c.distance == pytest.approx(4, rel=1e-3)
    assert c.outside


def test_a_giant_is_outside_and_its_nearest_is_on_the_limit(model: Model) -> None:
    (c,) = ask(model, "{volume_ml: 2.0, centroid_mm: [0, 0, 0]}")
    assert c.outside
    near = c.nearest
    (again,) = ask(model, f"{{volume_ml: {near['volume_ml']}, centroid_mm: {near['centroid_mm']}}}")
    assert again.distance == pytest.approx(again.limit, rel=1e-3)
    low, high = c.seen["volume_ml"]
    assert low < high < 2.0


def test_several_tissues_are_one_structure(model: Model) -> None:
    assert model.population is not None
    mass = union_moments(model.population, [1, 3])[0].log().mean().exp().item()
    (c,) = ask(model, f"{{mass: {mass}}}", "{family: global, grid: [8, 8, 8]}", "[Lu, Ve]")
    assert c.distance < 0.01


def test_a_round_shape_survives_the_way_there_and_back(model: Model) -> None:
    (c,) = ask(model, "{shape: [0.5, 0.3, 0.2, 0.01, 0.02, 0.03]}")
    assert c.requested["shape"] == pytest.approx([0.5, 0.3, 0.2, 0.01, 0.02, 0.03])
    assert sum(c.nearest["shape"][:3]) == pytest.approx(1)


def test_what_cannot_be_compared_says_why(model: Model) -> None:
    box = "{family: box, grid: [4, 4, 4], centre_mm: [0, 0, 0], size_mm: [2, 2, 2]}"
    (part,) = ask(model, "{mass: 0.001}", box)
    assert "box domain" in part.note
    assert not part.outside
    few = dataclasses.replace(model, population=population_moments(ellipsoids(3), 4))
    assert "only 3" in ask(few, "{mass: 0.1}")[0].note
    without = dataclasses.replace(model, population=None)
    assert "no population" in ask(without, "{mass: 0.1}")[0].note
    assert ask(model, "{betti: {b0: 1}}") == ()


def test_a_bounding_box_of_the_structure_holds_all_of_it(model: Model) -> None:
    from anatomica.anatomy.catalogue import anatomy
    from anatomica.anatomy.label_map import LabelMap, cube_affine

    array = ellipsoids(1)[0].numpy()
    reference = LabelMap(array, cube_affine(12.8, 16), anatomy("coronary").table)
    wanted = parse_spec(
        "name: x\nanatomy: coronary\nconstraints:\n- name: c\n  structure: [Lu]\n"
        "  domain: {family: cartesian, grid: [16, 16, 16]}\n"
    )
    (c,) = compare(model, resolve_for(model, wanted, reference))
    assert c.note == ""
    assert set(c.requested) == {"volume_ml", "centroid_mm", "shape", "spread_mm"}
    assert torch.isfinite(torch.tensor(c.distance))
