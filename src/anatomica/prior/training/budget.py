"""How long to train: a number of steps or of minutes; the learning rate follows the share that is done."""

from __future__ import annotations

import math
from dataclasses import dataclass

from anatomica.errors import AnatomicaError
from anatomica.prior.presets import TrainingConfig


@dataclass(frozen=True)
class Budget:
    """Train for `steps`, or for `minutes` of training time summed over resumed runs."""

    steps: int | None = None
    minutes: float | None = None

    def __post_init__(self) -> None:
        if (self.steps is None) == (self.minutes is None):
            raise AnatomicaError("give either a number of steps or a number of minutes")
        if (self.steps is not None and self.steps < 1) or (
            self.minutes is not None and not 0 < self.minutes < math.inf
        ):
            raise AnatomicaError("the training budget must be a positive number of steps or minutes")

    def progress(self, step: int, elapsed_s: float) -> float:
        """Share of the budget that is spent, 0 to 1."""
        spent = step / self.steps if self.steps is not None else elapsed_s / (60 * self.minutes)  # type: ignore[operator]
        return min(spent, 1.0)


def learning_rate(config: TrainingConfig, progress: float) -> float:
    """Linear warm-up over the first `warmup` of the run, then constant or half a cosine down to 1 %."""
    warm = min(1.0, (progress + 1e-3) / config.warmup) if config.warmup > 0 else 1.0
    if config.schedule == "constant":
        return config.lr * warm
    if config.schedule != "cosine":
        raise AnatomicaError(f"unknown schedule {config.schedule!r}; allowed: constant, cosine")
    tail = max(0.0, progress - config.warmup) / (1 - config.warmup)
    return config.lr * warm * (0.01 + 0.99 * 0.5 * (1 + math.cos(math.pi * tail)))
