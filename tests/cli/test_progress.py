"""The bar of sampling is full at the end, however many steps were taken and candidates drawn."""

import io

import pytest
import rich.progress
import torch
from rich.console import Console

from anatomica.cli.progress import sampling_bar
from anatomica.generation.sample import Progress
from anatomica.prior.sampler import Step


@pytest.mark.parametrize("turns", [[(25,)], [(15,), (15, 15)], [(25, 15, 25), (25,)]])
def test_the_bar_ends_full(monkeypatch, turns: list[tuple[int, ...]]) -> None:
    """Batches of 8 samples, each of one or more tries with so many steps."""
    made = []

    class Kept(rich.progress.Progress):
        def __init__(self, *columns, **options) -> None:
            super().__init__(*columns, **options)
            made.append(self)

    monkeypatch.setattr(rich.progress, "Progress", Kept)
    z = torch.zeros(1)
    with sampling_bar(Console(file=io.StringIO()), 8 * len(turns), 25, 8) as show:
        for batch in turns:
            for turn, count in enumerate(batch):
                for i in range(count):
                    show(Progress((0, 7), turn, Step(i, count, 1.0, z, z), []))
        (task,) = made[0].tasks
        assert task.completed == task.total == sum(map(sum, turns))
