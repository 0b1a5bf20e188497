"""How benchmarks time: contenders in turn, so that a busy machine slows all of them alike."""

from __future__ import annotations

from collections.abc import Callable
from statistics import median
from time import perf_counter

Timed = dict[str, Callable[[], object]]


def interleaved(
    contenders: Timed, rounds: int, warm_up: bool = True, clock: Callable[[], float] = perf_counter
) -> dict[str, float]:
    """Median seconds of each, one round after another; one before them warms up and is not counted.

    With `clock=process_time` they are seconds of a core, all threads together, whatever else is running.
    """
    seconds: dict[str, list[float]] = {name: [] for name in contenders}
    for _ in range(rounds + warm_up):
        for name, contender in contenders.items():
            started = clock()
            contender()
            seconds[name].append(clock() - started)
    return {name: median(times[warm_up:]) for name, times in seconds.items()}
