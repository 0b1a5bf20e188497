"""What is timed as one guided step: a task on some grid, at the middle of sampling, without a graph kept."""

from __future__ import annotations

from collections.abc import Callable

import torch

from anatomica.spec.spec import CartesianDomain, GlobalDomain, Spec

SIGMA = 1.0
"""Noise level at which a step is timed."""


def on_grid(spec: Spec, domain: type[CartesianDomain] | type[GlobalDomain], n: int) -> Spec:
    """The one-constraint task on another grid: local is the structure's box, coarse the whole cube."""
    (constraint,) = spec.constraints
    return spec.model_copy(
        update={"constraints": [constraint.model_copy(update={"domain": domain(grid=(n, n, n))})]}
    )


def no_grad(call: Callable[[], object]) -> Callable[[], object]:
    def timed() -> object:
        with torch.no_grad():
            return call()

    return timed
