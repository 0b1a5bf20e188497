"""Targets of named quantities, as the panel has them, and as the lines of a spec's `ask`."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Literal, NamedTuple

from pydantic import BaseModel, ConfigDict, Field

from anatomica.anatomy.catalogue import Anatomy
from anatomica.spec import asks
from anatomica.spec.spec import Spec
from anatomica.spec.vocabulary import lookup


class Ask(BaseModel):
    """One target: a value, a least or largest value, or a range. `tolerance` is in the quantity's
    `tolerance_unit`."""

    model_config = ConfigDict(extra="forbid", allow_inf_nan=False)

    how: Literal["equal", "range", "least", "most"] = "equal"
    value: float
    high: float | None = None
    tolerance: Annotated[float, Field(gt=0)] | None = None


class Shown(NamedTuple):
    """A spec's asks: those that the panel has a place for, by key, and the lines of the others."""

    asks: dict[str, Ask]
    lines: list[str]


def line(key: str, ask: Ask, about: Anatomy) -> str:
    """A target as a line of a spec: `lv.volume_ml = 140 ± 2 %`."""
    if ask.how == "range":
        low, high = sorted((ask.value, ask.value if ask.high is None else ask.high))
        return f"{key} = {low:.10g}..{high:.10g}"
    sign = {"equal": "=", "least": ">=", "most": "<="}[ask.how]
    text = f"{key} {sign} {ask.value:.10g}"
    entry = lookup(about, key)
    if ask.how != "equal" or ask.tolerance is None or ask.tolerance == entry.tolerance:
        return text
    return f"{text} ± {ask.tolerance:.10g}{' %' if entry.tolerance_unit == '%' else ''}"


def lines(wanted: Mapping[str, Ask], about: Anatomy) -> list[str]:
    return [line(key, ask, about) for key, ask in wanted.items()]


def shown(spec: Spec, about: Anatomy) -> Shown:
    """The way back: what of a spec's asks the panel shows."""
    found = Shown({}, [])
    for text, ask in zip(spec.ask, spec.asks(about), strict=True):
        simple = _simple(ask, about)
        if simple is None or simple[0] in found.asks:
            found.lines.append(text)
        else:
            found.asks[simple[0]] = simple[1]
    return found


def _simple(ask: asks.Ask, about: Anatomy) -> tuple[str, Ask] | None:
    """An ask of one quantity with numbers for bounds; None if it is more than that."""
    bounds = [b for b in (ask.low, ask.high) if b is not None]
    if not ask.left.single or ask.right is not None or any(b.kind != "number" for b in bounds):
        return None
    (key,) = ask.left.keys
    entry = lookup(about, key)
    tolerance = None
    if ask.tolerance is not None:
        tolerance, unit = ask.tolerance
        if (unit == "%") != (entry.tolerance_unit == "%"):
            return None
    if ask.equal and ask.low is not None:
        return key, Ask(value=ask.low.value, tolerance=tolerance)
    if ask.low is not None and ask.high is not None:
        return key, Ask(how="range", value=ask.low.value, high=ask.high.value)
    how: Literal["least", "most"] = "least" if ask.low is not None else "most"
    return key, Ask(how=how, value=bounds[0].value)
