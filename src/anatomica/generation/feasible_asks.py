"""Can an ask be held at all? Said before sampling, with the nearest values that can.

A quantity's limits are those of the model's population, widened as far as a sample may be and still count as
plausible. Asks that contradict each other, or that no values within the limits hold together, are refused.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Mapping, Sequence

from anatomica.anatomy.catalogue import Anatomy
from anatomica.errors import AnatomicaError
from anatomica.measurement.goals import Goal, sides
from anatomica.measurement.vocabulary.plan import Missing
from anatomica.prior.neighbours import BEYOND
from anatomica.prior.percentiles import Percentiles
from anatomica.spec.laws import Law, laws
from anatomica.spec.ranges import range_of, refuse_undefined
from anatomica.spec.vocabulary import lookup

Interval = tuple[float, float]
ANYTHING: Interval = (-math.inf, math.inf)
MOST_KEYS = 6
"""Formulas of more quantities are not compared: their extremes lie at 2^keys corners."""


def refuse_infeasible(goals: Sequence[Goal], population: Percentiles | None) -> None:
    """An error if no label map like the population's can hold all asks, with the nearest feasible values."""
    asked = _asked(goals)
    for goal in goals:
        if goal.ask.left.single and goal.ask.right is None:
            refuse_undefined(goal.ask.text, goal.entries[0], goal.low, goal.high)
    if goals:
        _check_laws(goals[0].about, _implied(goals, asked), population)
    if population is None:
        return
    for goal in goals:
        if goal.ask.left.single and goal.ask.right is None:
            _check_one(goal, population)
    about = goals[0].about if goals else None
    limits = {key: _both(limits_of(key, population, about), wanted) for key, wanted in asked.items()}
    for goal in goals:
        if not goal.ask.left.single or goal.ask.right is not None:
            known = {key: limits_of(key, population, about) for key in goal.ask.keys}
            _check_formula(goal, {**known, **limits})


def limits_of(key: str, population: Percentiles, about: Anatomy | None = None) -> Interval:
    """What a quantity can be: a fifth beyond the population's least and most, if its definition has that."""
    known = population.quantiles.get(key)
    if known is None:
        return ANYTHING
    share = BEYOND - 1
    limits = known[0] - share * abs(known[0]), known[-1] + share * abs(known[-1])
    return limits if about is None else _both(limits, range_of(lookup(about, key))[:2])


def _asked(goals: Sequence[Goal]) -> dict[str, Interval]:
    """What is asked of each single quantity; an error if two asks exclude each other."""
    found: dict[str, tuple[Interval, str]] = {}
    for goal in goals:
        if not goal.ask.left.single or goal.ask.right is not None:
            continue
        here = _interval(goal)
        if goal.name in found:
            before, text = found[goal.name]
            both = _both(before, here)
            if both[0] > both[1]:
                raise AnatomicaError(f"{text!r} and {goal.ask.text!r} contradict each other; drop one")
            here = both
        found[goal.name] = here, goal.ask.text
    return {key: interval for key, (interval, _) in found.items()}


def _implied(goals: Sequence[Goal], asked: Mapping[str, Interval]) -> dict[str, Interval]:
    """What is asked of each quantity, also by relations to a formula of quantities with asks of their own."""
    found = dict(asked)
    for goal in goals:
        right = goal.ask.right
        if right is None or not goal.ask.left.single or not 0 < len(right.keys) <= MOST_KEYS:
            continue
        ends = [asked.get(key, ANYTHING) for key in right.keys]
        if not all(math.isfinite(x) for interval in ends for x in interval):
            continue
        corners = [dict(zip(right.keys, corner, strict=True)) for corner in itertools.product(*ends)]
        try:
            values = [float(right.value(corner)) for corner in corners]
        except Missing:  # a limit by which is divided is 0
            continue
        least, most = _interval(goal)
        here = min(values) + least, max(values) + most
        found[goal.name] = _both(found.get(goal.name, ANYTHING), here)
    return found


def _interval(goal: Goal) -> Interval:
    return (
        -math.inf if goal.low is None else goal.low,
        math.inf if goal.high is None else goal.high,
    )


def _both(a: Interval, b: Interval) -> Interval:
    return max(a[0], b[0]), min(a[1], b[1])


def _check_one(goal: Goal, population: Percentiles) -> None:
    low, high = limits_of(goal.name, population, goal.about)
    least, most = _interval(goal)
    if least <= high and most >= low:
        return
    known = population.quantiles[goal.name]
    nearest = high if least > high else low
    raise AnatomicaError(
        f"{goal.ask.text!r} is out of reach: the model's population has {known[0]:.4g} to {known[-1]:.4g} "
        f"{goal.unit or ''}".rstrip()
        + f"; the nearest feasible value is {nearest:.4g}"
    )


def _check_laws(about: Anatomy, asked: Mapping[str, Interval], population: Percentiles | None) -> None:
    """An error if asks break what follows from the quantities' definitions.

    Only laws of which two quantities or more are asked are looked at; a quantity that is not asked may be
    whatever the population has.
    """
    for law in laws(about.name):
        named = [key for key in law.keys if key in asked]
        if len(named) < 2:
            continue
        known = {key: ANYTHING if population is None else limits_of(key, population) for key in law.keys}
        ranges = {key: range_of(lookup(about, key))[:2] for key in law.keys}
        limits = {key: _both(asked.get(key, known[key]), ranges[key]) for key in law.keys}
        least, most = _extremes(law, limits)
        if least <= law.slack and (not law.equal or most >= -law.slack):
            continue
        *others, last = named
        held = " and ".join(f"{key} = {_shown(asked[key])}" for key in others)
        raise AnatomicaError(
            f"{' and '.join(named)} cannot be held together: {law.words}; with {held} the nearest feasible "
            f"{last} is {_nearest(law, limits, last):.4g}"
        )


FAR = 1e9
"""Stands for an end that is not bounded."""


def _extremes(law: Law, limits: Mapping[str, Interval]) -> Interval:
    """Least and most of a law's `off`, at the corners of the limits."""
    ends = [[min(max(x, -FAR), FAR) for x in limits[key]] for key in law.keys]
    found = [law.off(dict(zip(law.keys, corner, strict=True))) for corner in itertools.product(*ends)]
    return min(found), max(found)


def _nearest(law: Law, limits: Mapping[str, Interval], key: str) -> float:
    """The value of one quantity, nearest to what is asked of it, with which the others keep the law."""

    # An equality is looked for in steps of 1 %.
    near = 0.75 * law.slack if law.equal else 0.0

    def breaks(value: float) -> bool:
        least, most = _extremes(law, {**limits, key: (value, value)})
        return least > near or (law.equal and most < -near)

    low, high = limits[key]
    start = next(x for x in (low, high, 1.0) if math.isfinite(x))
    for factor in (1.01, 1 / 1.01):
        value = start
        for _ in range(1500):
            value *= factor
            if not breaks(value):
                return value
    return start


def _shown(interval: Interval) -> str:
    low, high = interval
    if low == high:
        return f"{low:.4g}"
    if math.isinf(low) or math.isinf(high):
        return f"at most {high:.4g}" if math.isinf(low) else f"at least {low:.4g}"
    return f"{low:.4g}..{high:.4g}"


def _check_formula(goal: Goal, limits: Mapping[str, Interval]) -> None:
    """Extremes of a formula lie at corners of its quantities' limits, where it rises or falls with each."""
    keys = goal.ask.keys
    if len(keys) > MOST_KEYS or not all(math.isfinite(x) for key in keys for x in limits[key]):
        return
    corners = []
    for corner in itertools.product(*(limits[key] for key in keys)):
        values = dict(zip(keys, corner, strict=True))
        try:
            both = sides(goal.ask, values)
        except Missing:  # a limit by which is divided is 0
            return
        corners.append((float(both.left) - float(both.right), values))
    low, high = min(corners, key=lambda x: x[0]), max(corners, key=lambda x: x[0])
    least, most = _interval(goal)
    if least <= high[0] and most >= low[0]:
        return
    nearest = (high if least > high[0] else low)[1]
    shown = ", ".join(f"{key} = {value:.4g}" for key, value in nearest.items())
    raise AnatomicaError(
        f"{goal.ask.text!r} is out of reach with the other asks; the nearest feasible values are {shown}"
    )
