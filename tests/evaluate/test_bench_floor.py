"""`anatomica bench floor`: what true patients achieve on two grids."""

from anatomica.evaluate.bench.floor import count_floor_of, volume_floor_of


def test_true_aortas_keep_their_count_within_the_tasks_calibre() -> None:
    found = count_floor_of("branch-connectivity", 2)
    assert list(found) == ["0.2", "0.5", "1", "own"]
    assert found["0.2"] >= found["0.5"] >= found["1"]
    assert found["own"] == found["0.5"]


def test_true_volumes_lie_within_the_default_tolerance() -> None:
    found = volume_floor_of("aortic", 3)
    assert found["volumes"] == 18
    assert found["fixed"] < found["default"]
    assert found["default"] > 0.85
