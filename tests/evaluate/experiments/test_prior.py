"""Quality of a prior's samples: volumes against a population, and the curve that chooses the sampler."""

import json
from pathlib import Path

import numpy as np
import pytest

from anatomica.evaluate.experiments.prior import CURVE, quality, sampling_curve, volume_table
from anatomica.generation.draw import draw
from anatomica.generation.options import Options
from anatomica.prior.zoo import Model, load_model
from tiny_prior import ellipsoids, save_tiny_model


@pytest.fixture(scope="module")
def model(tmp_path_factory) -> Model:
    return load_model(save_tiny_model(tmp_path_factory.mktemp("prior") / "model"))


def test_a_populations_volumes_are_its_own(model: Model) -> None:
    maps = ellipsoids(12)
    same = volume_table(maps, maps, model.table, model.edge_mm)
    assert list(same) == list(model.table.tissues)
    voxel_ml = (model.edge_mm / maps.shape[1]) ** 3 / 1000
    for c, name in enumerate(same, start=1):
        assert same[name]["ks"] == 0
        assert same[name]["mean_ml"] == pytest.approx(int((maps == c).sum()) / 12 * voxel_ml, rel=1e-3)
    emptied = volume_table(maps.where(maps != 1, 0), maps, model.table, model.edge_mm)
    assert emptied[model.table.tissues[0]]["ks"] == 1


def test_samples_do_not_depend_on_their_batch(model: Model) -> None:
    three, one = (
        [s.label_map.array for s in draw(model, range(3), options=Options(tries=1, batch=batch))]
        for batch in (3, 1)
    )
    assert all(np.array_equal(a, b) for a, b in zip(three, one, strict=True))


def test_quality_compares_with_what_was_held_out(model: Model) -> None:
    training, held_out = ellipsoids(12, seed=1), ellipsoids(10, seed=2)
    found = quality(model, training, held_out, count=8)
    assert found["samples"] == 8
    assert 0 < found["fmd_training"] < found["fmd"], (
        "an untrained model is further away than the training set"
    )
    assert 0 <= found["nearest_training_dice"] < found["nearest_training_dice_of_held_out"] < 1


def test_the_curve_has_every_method_with_its_calls(model: Model, tmp_path: Path) -> None:
    said: list[str] = []
    rows = sampling_curve(model, ellipsoids(8), tmp_path, count=4, calls=(3, 5), tell=said.append)
    assert [r["calls"] for r in rows] == [3, 5] * len(CURVE)
    assert len(said) == len(rows)
    assert all(r["fmd"][1] <= r["fmd"][0] <= r["fmd"][2] for r in rows)
    assert json.loads((tmp_path / "sampling-coronary.json").read_text()) == rows
    assert (tmp_path / "sampling-coronary.png").stat().st_size > 5000
