"""The benchmark of the engine: short runs of its parts."""

from __future__ import annotations

import pytest

from anatomica.cohort.bench import driver_alone, open_waiting, storage, throughput


def test_two_workers_that_only_wait_are_faster_than_one() -> None:
    """0.2 s each: one worker gives 5 per second at most, two give 10."""
    one, two = (throughput(12, workers, open_waiting)["rate"] for workers in (1, 2))
    assert one <= 5.0
    assert one < two


def test_the_driver_alone_and_the_store_are_counted() -> None:
    found = driver_alone(300)
    assert found["patients"] == 300
    assert found["patients_per_second"] == pytest.approx(300 / found["driver_seconds"])
    kept = storage(3)
    assert 1000 < kept["bytes"] < 64**3
