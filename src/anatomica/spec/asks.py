"""Asks: what is wanted of named quantities, in words. `docs/quantities.md` lists every way to ask.

lv.volume_ml = 140                      equal, within the quantity's tolerance
lv.volume_ml = 140 ± 2                  equal, within a tolerance of your own
lv.mass_g = 90..120                     a range; also 90 <= lv.mass_g <= 120
ao.tortuosity <= 1.25                   at most; >= is at least
ao.mid_ascending.diameter_mm = p90      a percentile of the model's population
rv.volume_ml = +10 %                    relative to a reference (also +3 mm)
rv.volume_ml <= 1.2 * lv.volume_ml      a relation of two quantities
LV does not touch RV                    a relation of two tissues (`spec.relations.SENTENCES`)
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal, NamedTuple

from anatomica.anatomy.catalogue import Anatomy
from anatomica.errors import AnatomicaError, shown
from anatomica.spec.expression import SCALAR, UNITS, Expression, Token, converted, parse, tokens
from anatomica.spec.ranges import refuse_undefined
from anatomica.spec.relations import in_words
from anatomica.spec.vocabulary import lookup
from anatomica.spec.vocabulary_tables import Entry

Place = Literal["prediction", "reference"]
MOST_LETTERS = 400
"""Of an ask; a sum of ten quantities has about 200."""
COMPARISONS = ("<=", ">=", "==", "<", ">", "=")
WORDS = {"true": 1.0, "yes": 1.0, "false": 0.0, "no": 0.0}
PERCENTILE = re.compile(r"^p(\d+(?:\.\d+)?)$")


@dataclass(frozen=True)
class Bound:
    """A number to compare with: itself, a percentile of the population, or relative to a reference, as a
    share in % or as a difference in the quantity's unit."""

    kind: Literal["number", "percentile", "share", "difference"]
    value: float


@dataclass(frozen=True)
class Ask:
    """One ask. Equality: `low` and `high` are the same bound. A relation has `right`, and bounds of 0 on the
    difference of its sides. `tolerance` is a number and its unit, `%` or the quantity's own."""

    text: str
    left: Expression
    right: Expression | None
    low: Bound | None
    high: Bound | None
    tolerance: tuple[float, str] | None = None

    @property
    def equal(self) -> bool:
        return self.low is not None and self.low == self.high

    @property
    def keys(self) -> tuple[str, ...]:
        """Every quantity that it reads."""
        return tuple(dict.fromkeys((*self.left.keys, *(self.right.keys if self.right else ()))))

    @property
    def needs_reference(self) -> bool:
        return any(b is not None and b.kind in ("share", "difference") for b in (self.low, self.high))


class Asks(NamedTuple):
    """What `ask(...)` returns: asks as text, for an anatomy that the model decides. `place` is where levels
    and rays are placed: on the prediction, or on a reference (None: on a reference where there is one)."""

    texts: tuple[str, ...]
    place: Place | None = None


def ask(wanted: Mapping[str, Any] | Iterable[str] | str, *more: str, place: Place | None = None) -> Asks:
    """Asks from a mapping of quantities to what is wanted of them, and from text.

    >>> ask({"lv.volume_ml": 140, "lv.mass_g": (90, 120)}, "rv.volume_ml <= 1.2 * lv.volume_ml").texts
    ('lv.volume_ml = 140', 'lv.mass_g = 90..120', 'rv.volume_ml <= 1.2 * lv.volume_ml')
    """
    return Asks((*texts_of(wanted), *more), place)


def texts_of(wanted: Mapping[str, Any] | Iterable[str] | str) -> tuple[str, ...]:
    """Every ask as one line of text."""
    if isinstance(wanted, str):
        return (wanted,)
    if isinstance(wanted, Mapping):
        return tuple(_line(str(key), value) for key, value in wanted.items())
    return tuple(str(x) for x in wanted)


def _line(key: str, value: Any) -> str:
    if isinstance(value, bool):
        return f"{key} = {'true' if value else 'false'}"
    if isinstance(value, int | float):
        return f"{key} = {value!r}"
    if isinstance(value, str):
        text = value.strip()
        return f"{key} {text}" if text.startswith(COMPARISONS) else f"{key} = {text}"
    if isinstance(value, Sequence) and len(value) == 2:
        low, high = value
        if low is None or high is None:
            return f"{key} {'<=' if low is None else '>='} {high if low is None else low}"
        return f"{key} = {low}..{high}"
    raise AnatomicaError(f"{key}: a number, a pair (low, high) or text is expected, not {shown(value)}")


def parse_ask(text: str, about: Anatomy) -> Ask:
    """An ask of an anatomy's quantities; every problem is one sentence.

    >>> from anatomica.anatomy.catalogue import ANATOMIES
    >>> parse_ask("90 <= lv.mass_g <= 120", ANATOMIES["cardiac"]).high
    Bound(kind='number', value=120.0)
    """
    if len(text) > MOST_LETTERS:
        raise AnatomicaError(f"{shown(text)} has {len(text)} letters; an ask has at most {MOST_LETTERS}")
    found = _parsed(text, about)
    _check_numbers(found)
    if found.left.single and found.right is None:
        low, high = (None if b is None or b.kind != "number" else b.value for b in (found.low, found.high))
        refuse_undefined(text, lookup(about, found.left.text), low, high)
    return found


def _check_numbers(ask: Ask) -> None:
    """An error if a side divides by zero or is no number, whatever the quantities are.

    That is so if it is so at values that have nothing to do with each other.
    """
    values = {key: 1.37 + 0.618 * i for i, key in enumerate(ask.keys)}
    for side in (ask.left, *(() if ask.right is None else (ask.right,))):
        try:
            if math.isfinite(side.value(values)):
                continue
            what = "is too large a number"
        except ZeroDivisionError:
            what = "divides by zero"
        raise AnatomicaError(f"{ask.text!r}: {shown(side.text)} {what}")


def _parsed(text: str, about: Anatomy) -> Ask:
    sides, signs = _split(tokens(in_words(text)), text)

    def known(word: str) -> tuple[str, str]:
        entry = lookup(about, word)
        return entry.key, entry.unit

    if len(sides) == 3:
        return _chained(text, sides, signs, about)
    first, second = sides
    if not _has_key(first, about) and _has_key(second, about):
        first, second, signs = second, first, [_turned(signs[0])]
    left = parse(first, known, text)
    if not left.keys:
        raise AnatomicaError(f"{text!r} names no quantity; see: anatomica quantities --anatomy {about.name}")
    if _has_key(second, about):
        right = parse(second, known, text)
        if right.unit != left.unit:
            raise AnatomicaError(
                f"{text!r}: {left.text} has the unit {left.unit}, {right.text} has {right.unit}; "
                "only quantities of one unit can be compared"
            )
        zero = Bound("number", 0.0)
        return _compared(text, left, right, signs[0], zero, None)
    return _bounded(text, left, signs[0], second)


def entries_of(wanted: Ask, about: Anatomy) -> list[Entry]:
    return [lookup(about, key) for key in wanted.keys]


def _split(words: list[Token], text: str) -> tuple[list[list[Token]], list[str]]:
    """The sides of one or two comparisons."""
    sides: list[list[Token]] = [[]]
    signs: list[str] = []
    for token in words:
        if token.kind == "sign" and token.text in COMPARISONS:
            signs.append(token.text)
            sides.append([])
        else:
            sides[-1].append(token)
    if len(signs) not in (1, 2) or not all(sides):
        raise AnatomicaError(
            f"{text!r} is not an ask; write QUANTITY = VALUE, QUANTITY = LOW..HIGH, QUANTITY <= VALUE or "
            "QUANTITY >= VALUE; or of tissues A touches B, A does not touch B, A encloses B, A in one piece"
        )
    return sides, signs


def _has_key(side: Sequence[Token], about: Anatomy) -> bool:
    """Whether a side names a quantity, or a word that should be one."""
    words = [t.text for t in side if t.kind == "word"]
    return any(not _target_word(x) for x in words)


def _target_word(word: str) -> bool:
    return word.lower() in WORDS or word.lower() in UNITS or PERCENTILE.match(word.lower()) is not None


def _turned(sign: str) -> str:
    return {"<=": ">=", ">=": "<=", "<": ">", ">": "<"}.get(sign, sign)


def _chained(text: str, sides: list[list[Token]], signs: list[str], about: Anatomy) -> Ask:
    """`LOW <= quantity <= HIGH`, or the other way round."""
    first, middle, last = sides
    if {x[0] for x in signs} == {">"}:
        first, last = last, first
    elif {x[0] for x in signs} != {"<"}:
        raise AnatomicaError(f"{text!r}: write LOW <= QUANTITY <= HIGH")
    left = parse(middle, lambda word: _key(lookup(about, word)), text)
    low, high = (_bounded(text, left, "=", side).low for side in (first, last))
    return Ask(text, left, None, *_ordered(text, low, high))


def _key(entry: Entry) -> tuple[str, str]:
    return entry.key, entry.unit


def _bounded(text: str, left: Expression, sign: str, side: Sequence[Token]) -> Ask:
    """An expression compared with a number, a range, a percentile or a reference."""
    side, tolerance = _without_tolerance(text, left, list(side))
    dots = next((i for i, t in enumerate(side) if t.text == ".."), None)
    if dots is None:
        return _compared(text, left, None, sign, _bound(text, left, side), tolerance)
    if sign not in ("=", "=="):
        raise AnatomicaError(f"{text!r}: a range takes '=', as in {left.text} = 1..2")
    low, high = side[:dots], side[dots + 1 :]
    if low and high and low[-1].text.lower() not in UNITS and high[-1].text.lower() in UNITS:
        low = [*low, high[-1]]  # 4..5 cm
    return Ask(text, left, None, *_ordered(text, _bound(text, left, low), _bound(text, left, high)))


def _compared(
    text: str,
    left: Expression,
    right: Expression | None,
    sign: str,
    bound: Bound,
    tolerance: tuple[float, str] | None,
) -> Ask:
    low = bound if sign in ("=", "==", ">=", ">") else None
    high = bound if sign in ("=", "==", "<=", "<") else None
    return Ask(text, left, right, low, high, tolerance)


def _ordered(text: str, low: Bound | None, high: Bound | None) -> tuple[Bound, Bound]:
    assert low is not None
    assert high is not None
    if low.kind == high.kind and low.value >= high.value:
        raise AnatomicaError(f"{text!r}: the range ends before it begins")
    return low, high


def _without_tolerance(
    text: str, left: Expression, side: list[Token]
) -> tuple[list[Token], tuple[float, str] | None]:
    """What stands before `±`, and the tolerance after it."""
    at = next((i for i, t in enumerate(side) if t.text in ("±", "+-")), None)
    if at is None:
        return side, None
    after = side[at + 1 :]
    if not after or after[0].kind != "number" or len(after) > 2 or float(after[0].text) <= 0:
        raise AnatomicaError(f"{text!r}: after ± a positive number is expected, with its unit or %")
    number = float(after[0].text)
    if len(after) == 1:
        return side[:at], (number, left.unit)
    if after[1].text == "%" and left.unit != "%":
        return side[:at], (number, "%")
    return side[:at], (converted(number, after[1].text, left.unit, text), left.unit)


def _bound(text: str, left: Expression, side: Sequence[Token]) -> Bound:
    words = [t.text for t in side]
    if len(side) == 1 and words[0].lower() in WORDS and left.unit == SCALAR:
        return Bound("number", WORDS[words[0].lower()])
    if len(side) == 1 and (percent := PERCENTILE.match(words[0].lower())):
        if not left.single:
            raise AnatomicaError(f"{text!r}: percentiles are of one quantity, not of a formula")
        if not 0 <= float(percent[1]) <= 100:
            raise AnatomicaError(f"{text!r}: a percentile is p0 to p100")
        return Bound("percentile", float(percent[1]))
    sign = words[0] if words and words[0] in "+-" else ""
    rest = list(side[1:] if sign else side)
    if not rest or rest[0].kind != "number" or len(rest) > 2:
        raise AnatomicaError(
            f"{text!r}: a number, a range (1..2), a percentile (p90), a change (+10 %) or a quantity is "
            f"expected after {left.text}"
        )
    number = float(rest[0].text) * (-1.0 if sign == "-" else 1.0)
    if len(rest) == 1:
        return Bound("number", number)
    unit = rest[1].text
    if sign and unit == "%":
        return Bound("share", number)
    number = converted(number, unit, left.unit, text) if left.unit != SCALAR else _plain(text, unit, left)
    return Bound("difference" if sign else "number", number)


def _plain(text: str, unit: str, left: Expression) -> float:
    raise AnatomicaError(f"{text!r}: {left.text} has no unit, so {unit!r} does not fit")
