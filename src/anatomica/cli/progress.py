"""The progress bar of sampling: steps, time left and the current errors."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from statistics import median
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from rich.console import Console

    from anatomica.generation.sample import Callback, Progress
    from anatomica.guidance.trace import Error


@contextmanager
def sampling_bar(console: Console, samples: int, steps: int, batch: int) -> Iterator[Callback]:
    """A callback for `draw` that draws a bar of as many steps as samples take.

    Candidates drawn again take more, samples that do not begin in noise fewer than `steps`.
    """
    from rich.progress import BarColumn, MofNCompleteColumn, TextColumn, TimeRemainingColumn
    from rich.progress import Progress as Bar

    columns = (
        TextColumn("{task.description}"),
        BarColumn(),
        MofNCompleteColumn(),
        TimeRemainingColumn(),
        TextColumn("{task.fields[errors]}"),
    )
    with Bar(*columns, console=console, transient=True) as bar:
        task = bar.add_task("sampling", total=steps * -(-samples // batch), errors="")
        latest: dict[str, str] = {}

        def show(progress: Progress) -> None:
            if progress.step.index == 0:
                more = progress.step.count - (0 if progress.turn else steps)
                bar.update(task, total=(bar.tasks[0].total or 0) + more)
            latest.update(current_errors(progress.errors))
            first, last = progress.seeds[0], progress.seeds[-1]
            again = f", draw {progress.turn + 1}" if progress.turn else ""
            seeds = f"seed {first}" if first == last else f"seeds {first} to {last}"
            bar.update(task, advance=1, description=f"{seeds}{again}", errors="  ".join(latest.values()))

        yield show


def current_errors(errors: list[list[Error]]) -> dict[str, str]:
    """A quantity's error as text: of each sample the worst constraint, of the batch the median."""
    from anatomica.guidance.trace import UNITS

    worst: dict[str, list[float]] = {}
    for sample in errors:
        found: dict[str, float] = {}
        for e in sample:
            found[e.quantity] = max(found.get(e.quantity, 0.0), e.error)
        for quantity, error in found.items():
            worst.setdefault(quantity, []).append(error)
    return {q: f"{q} {median(values):.3g} {UNITS[q]}".rstrip() for q, values in worst.items()}
