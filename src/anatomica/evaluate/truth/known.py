"""A phantom's named quantities by key, from its analytic shapes."""

from __future__ import annotations

from importlib import import_module

from anatomica.data.phantoms import Truth


def known(truth: Truth) -> dict[str, float]:
    """What is true of a phantom, as far as it has the quantities of its anatomy's vocabulary."""
    # Only the asked anatomy's module is imported; each brings its phantoms along.
    return import_module(f"anatomica.evaluate.truth.{truth.anatomy}").known(truth)
