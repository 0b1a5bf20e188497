"""Expressions of named quantities: `rv.volume_ml / lv.volume_ml`, `1.2 * lv.volume_ml`, with their units."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from anatomica.errors import AnatomicaError, shown

SCALAR = "1"
"""The unit of a plain number."""
CONVERSIONS: dict[str, dict[str, float]] = {
    "mm": {"mm": 1.0, "cm": 10.0, "m": 1000.0},
    "mm2": {"mm2": 1.0, "cm2": 100.0},
    "mm3": {"mm3": 1.0, "ul": 1.0, "ml": 1000.0, "cm3": 1000.0},
    "mL": {"ml": 1.0, "cm3": 1.0, "cc": 1.0, "l": 1000.0, "mm3": 0.001},
    "g": {"g": 1.0, "kg": 1000.0},
    "deg": {"deg": 1.0, "°": 1.0, "degrees": 1.0},
    "%": {"%": 1.0},
}
"""What one of a user's units is in a quantity's own."""
UNITS = frozenset(name for known in CONVERSIONS.values() for name in known)
MOST, MOST_BRACKETS = 1e12, 20
"""Of one number, and of one expression."""
TOKEN = re.compile(
    r"\s*(?:(?P<number>[0-9]+(?:\.[0-9]+)?(?:[eE][+-]?[0-9]+)?)"
    r"|(?P<word>disc\.\w+-\w+\.\w+|[A-Za-z_]\w*(?:\.\w+)*(?:\[[^\]]*\](?:\.\w+)*)?|°)"
    r"|(?P<sign><=|>=|==|\.\.|\+-|±|[-+*/()<>=%]))"
)


@dataclass(frozen=True)
class Token:
    """A number, a word or a sign."""

    kind: str
    text: str


def tokens(text: str) -> list[Token]:
    """The words of an ask; an error quotes what is none.

    >>> [t.text for t in tokens("rv.volume_ml <= 1.2 * lv.volume_ml")]
    ['rv.volume_ml', '<=', '1.2', '*', 'lv.volume_ml']
    """
    found, at = [], 0
    text = text.rstrip()
    if text.count("(") > MOST_BRACKETS:
        raise AnatomicaError(f"{shown(text)} has more than {MOST_BRACKETS} brackets")
    while at < len(text):
        match = TOKEN.match(text, at)
        if match is None:
            raise AnatomicaError(f"{text!r}: {text[at:].strip()[:20]!r} is not understood")
        kind = str(match.lastgroup)
        if kind == "number" and not float(match[kind]) <= MOST:
            raise AnatomicaError(f"{shown(text)}: the number {shown(match[kind], 20)} is too large")
        found.append(Token(kind, match[kind]))
        at = match.end()
    return found


Value = Callable[[Mapping[str, Any]], Any]


@dataclass(frozen=True)
class Expression:
    """A formula of quantities: its text, the keys it reads, its unit, and its value given theirs."""

    text: str
    keys: tuple[str, ...]
    unit: str
    value: Value

    @property
    def single(self) -> bool:
        """Whether it is one quantity as it is."""
        return len(self.keys) == 1 and self.text == self.keys[0]


def converted(number: float, unit: str, own: str, text: str) -> float:
    """A number with a user's unit in a quantity's own unit; an error names the units that fit."""
    known = CONVERSIONS.get(own, {})
    if unit.lower() not in known:
        allowed = ", ".join(dict.fromkeys([own, *known])) if known else "a plain number"
        raise AnatomicaError(f"{text!r}: {unit!r} is not a unit of this quantity; allowed: {allowed}")
    return number * known[unit.lower()]


def constant(number: float) -> Expression:
    return Expression(f"{number:g}", (), SCALAR, lambda _: number)


def parse(words: Sequence[Token], lookup: Callable[[str], tuple[str, str]], text: str) -> Expression:
    """An expression; `lookup` gives a word's key and unit, or raises with the nearest names.

    Grammar: sum = product (+|- product)*, product = factor (*|/ factor)*, factor = number | key | (sum).
    """
    place = 0

    def peek() -> str:
        return words[place].text if place < len(words) else ""

    def take() -> Token:
        nonlocal place
        if place >= len(words):
            raise AnatomicaError(f"{text!r} ends too early: a quantity or a number is missing")
        place += 1
        return words[place - 1]

    def factor() -> Expression:
        token = take()
        if token.text == "(":
            inner = total()
            if peek() != ")":
                raise AnatomicaError(f"{text!r}: a closing bracket is missing")
            take()
            return Expression(f"({inner.text})", inner.keys, inner.unit, inner.value)
        if token.text == "-":
            inner = factor()
            return Expression(f"-{inner.text}", inner.keys, inner.unit, lambda x: -inner.value(x))
        if token.kind == "number":
            return constant(float(token.text))
        if token.kind == "word":
            key, unit = lookup(token.text)
            return Expression(key, (key,), unit or SCALAR, lambda x: x[key])
        raise AnatomicaError(f"{text!r}: a quantity or a number is expected, not {token.text!r}")

    def product() -> Expression:
        left = factor()
        while peek() in ("*", "/"):
            sign, right = take().text, factor()
            left = _times(left, right) if sign == "*" else _over(left, right)
        return left

    def total() -> Expression:
        left = product()
        while peek() in ("+", "-"):
            sign, right = take().text, product()
            left = _plus(left, right, sign, text)
        return left

    found = total()
    if place < len(words):
        raise AnatomicaError(f"{text!r}: {words[place].text!r} is not expected there")
    return found


def _both(left: Expression, sign: str, right: Expression, unit: str, value: Value) -> Expression:
    keys = tuple(dict.fromkeys((*left.keys, *right.keys)))
    return Expression(f"{left.text} {sign} {right.text}", keys, unit, value)


def _times(left: Expression, right: Expression) -> Expression:
    units = [x.unit for x in (left, right) if x.unit != SCALAR]
    unit = "*".join(units) or SCALAR
    return _both(left, "*", right, unit, lambda x: left.value(x) * right.value(x))


def _over(left: Expression, right: Expression) -> Expression:
    unit = left.unit if right.unit == SCALAR else f"{left.unit}/{right.unit}"
    unit = SCALAR if left.unit == right.unit else unit
    return _both(left, "/", right, unit, lambda x: left.value(x) / right.value(x))


def _plus(left: Expression, right: Expression, sign: str, text: str) -> Expression:
    if left.unit != right.unit and left.keys and right.keys:
        raise AnatomicaError(
            f"{text!r}: {left.text} has the unit {left.unit}, {right.text} has {right.unit}; "
            "only quantities of one unit can be added or compared"
        )
    factor = 1.0 if sign == "+" else -1.0
    unit = left.unit if left.keys else right.unit
    return _both(left, sign, right, unit, lambda x: left.value(x) + factor * right.value(x))
