"""Which patients are kept: conditions such as `valid` and `ao.mid_arch.max_diameter_mm < 55`, and strata."""

from __future__ import annotations

import operator
import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass

from anatomica.anatomy.catalogue import anatomy as named_anatomy
from anatomica.errors import AnatomicaError
from anatomica.spec.vocabulary import entries, lookup
from anatomica.spec.vocabulary_tables import Entry

VALID = "valid"
NORMAL = "normal"
OPERATORS: dict[str, Callable[[float, float], bool]] = {
    "<=": operator.le,
    ">=": operator.ge,
    "==": operator.eq,
    "!=": operator.ne,
    "<": operator.lt,
    ">": operator.gt,
}
_CONDITION = re.compile(r"^\s*(?P<key>\S.*?)\s*(?P<sign><=|>=|==|!=|<|>)\s*(?P<number>[-+.\deE]+)\s*$")


@dataclass(frozen=True)
class Condition:
    """A quantity compared with a number. A patient without the quantity does not meet it."""

    key: str
    sign: str
    number: float

    def __str__(self) -> str:
        return f"{self.key} {self.sign} {self.number:g}"

    def holds(self, value: float) -> bool:
        return OPERATORS[self.sign](value, self.number)

    def met(self, quantities: Mapping[str, float]) -> bool:
        return self.key in quantities and self.holds(quantities[self.key])

    @property
    def range(self) -> tuple[float, float]:
        """The values that meet it, as a closed interval (all of them for `!=`)."""
        low = self.number if self.sign in (">", ">=", "==") else -float("inf")
        high = self.number if self.sign in ("<", "<=", "==") else float("inf")
        return low, high


def quantity(anatomy: str, key: str) -> Entry:
    """The vocabulary's entry of a key; an unknown one is an error with the nearest name."""
    return lookup(named_anatomy(anatomy), key)


def condition(anatomy: str, text: str) -> Condition:
    """A condition from text.

    >>> str(condition("aortic", "ao.tortuosity<1.3"))
    'ao.tortuosity < 1.3'
    """
    found = _CONDITION.match(text)
    try:
        number = float(found["number"]) if found else None
    except ValueError:
        number = None
    if found is None or number is None:
        raise AnatomicaError(
            f"{text!r} is no condition; write {VALID!r}, or a quantity, "
            f"one of {' '.join(OPERATORS)} and a number"
        )
    return Condition(quantity(anatomy, found["key"]).key, found["sign"], number)


def conditions(anatomy: str, texts: Iterable[str]) -> tuple[Condition, ...]:
    """All conditions but `valid`; contradictions are an error."""
    found = tuple(condition(anatomy, text) for text in texts if text.strip() != VALID)
    for key in dict.fromkeys(c.key for c in found):
        own = [c for c in found if c.key == key]
        low, high = max(c.range[0] for c in own), min(c.range[1] for c in own)
        strict = any(c.sign in ("<", ">", "!=") and c.number == low for c in own)
        if low > high or (low == high and strict):
            raise AnatomicaError(f"no patient can meet {' and '.join(repr(str(c)) for c in own)} at once")
    return found


def stratum_conditions(anatomy: str, name: str, others: Iterable[str]) -> tuple[Condition, ...]:
    """What a stratum means that is only named: a count of the vocabulary is at least 1 (`bovine`), and
    `normal` is none of the other strata."""
    counts = {e.key.lower(): e.key for e in entries(anatomy) if e.count}
    if name == NORMAL:
        known = [counts[x.lower()] for x in others if x.lower() in counts]
        return tuple(Condition(key, "<", 1.0) for key in known)
    if name.lower() not in counts:
        allowed = ", ".join(sorted((NORMAL, *counts.values())))
        raise AnatomicaError(
            f"the stratum {name!r} is not known; use one of {allowed}, or say what it is: "
            f'{name}: {{share: 0.3, when: ["QUANTITY > NUMBER"]}}'
        )
    return (Condition(counts[name.lower()], ">=", 1.0),)
