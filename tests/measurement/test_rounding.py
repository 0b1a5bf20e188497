"""What counting voxels can tell of a volume."""

import numpy as np
import pytest

from anatomica.measurement.rounding import volume_floor_percent


def ball_volumes(radius: float, count: int) -> np.ndarray:
    """Voxels counted of balls whose centres lie anywhere in a voxel."""
    rng = np.random.default_rng(0)
    line = np.arange(-int(radius) - 3, int(radius) + 4) + 0.5
    found = []
    for centre in rng.uniform(0, 1, (count, 3)):
        x, y, z = (np.square(line - c) for c in centre)
        found.append((x[:, None, None] + y[None, :, None] + z[None, None] < radius**2).sum())
    return np.array(found)


@pytest.mark.parametrize("radius", [1.5, 2.5, 4.0, 8.0])
def test_counted_balls_lie_within_the_floor(radius: float) -> None:
    """In 9 of 10 cases, though a ball's border voxels round together; and the floor is not so wide that it
    says nothing."""
    true = 4 / 3 * np.pi * radius**3
    off = 100 * np.abs(ball_volumes(radius, 400) / true - 1)
    floor = volume_floor_percent(true)
    assert (off <= floor).mean() >= 0.9
    assert floor <= 8 * np.percentile(off, 95)


def test_the_floor_falls_with_size_and_nothing_has_none() -> None:
    floors = [volume_floor_percent(n) for n in (1, 10, 100, 1000, 10_000)]
    assert floors == sorted(floors, reverse=True)
    assert volume_floor_percent(0) == float("inf")
