"""Numbers on the command line: typer takes nan and inf for numbers, and lets them past every bound."""

from __future__ import annotations

import math

import typer

from anatomica.errors import shown


def positive(text: str | float) -> float:
    """A finite number above 0.

    >>> positive("0.5")
    0.5
    """
    value = _finite(text)
    if value <= 0:
        raise typer.BadParameter(f"a number above 0 is wanted, found {shown(text)}")
    return value


def not_negative(text: str | float) -> float:
    """A finite number, 0 or above."""
    value = _finite(text)
    if value < 0:
        raise typer.BadParameter(f"a number from 0 up is wanted, found {shown(text)}")
    return value


def _finite(text: str | float) -> float:
    try:
        value = float(text)
    except ValueError:
        value = math.nan
    if not math.isfinite(value) or abs(value) > 1e12:
        raise typer.BadParameter(f"a number is wanted, found {shown(text)}")
    return value
