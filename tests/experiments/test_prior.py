"""The card's numbers of a prior, on an untrained tiny model and maps whose volumes are known."""

import torch

from anatomica.experiments.prior import quality, sampling_curve, volume_table
from anatomica.models.zoo import load_model
from tiny_prior import ellipsoids, save_tiny_model


def test_volumes_of_two_sets() -> None:
    model_edge, maps = 12.8, ellipsoids(4)
    table = load_table()
    found = volume_table(maps, maps, table, model_edge)
    name = table.tissues[0]
    expected = float((maps == 1).sum()) / 4 * (model_edge / 16) ** 3 / 1000
    assert abs(found[name]["mean_ml"] - expected) < 1e-3 * expected
    assert found[name]["ks"] == 0
    empty = volume_table(torch.zeros_like(maps), maps, table, model_edge)
    assert empty[name]["ks"] == 1


def load_table():
    from anatomica.labels import anatomy

    return anatomy("coronary").table


def test_quality_and_curve_of_an_untrained_model(tmp_path) -> None:
    model = load_model(save_tiny_model(tmp_path / "model"))
    found = quality(model, ellipsoids(6, seed=1), ellipsoids(5, seed=2), count=4)
    assert found["fmd"] > found["fmd_training"] > 0
    assert 0 <= found["nearest_training_dice"] < found["nearest_training_dice_of_held_out"] < 1
    rows = sampling_curve(model, ellipsoids(5, seed=2), tmp_path, count=2, steps=(1, 2))
    assert len(rows) == 12
    assert (tmp_path / "sampling-coronary.png").is_file()
