"""Which requests and conditions are refused before anything is drawn, and why."""

from __future__ import annotations

from anatomica.anatomy.catalogue import anatomy
from anatomica.cohort.plan import Plan, Request
from anatomica.cohort.rules import quantity
from anatomica.errors import AnatomicaError
from anatomica.generation.feasible_asks import limits_of, refuse_infeasible
from anatomica.measurement.goals import resolve_asks
from anatomica.prior.percentiles import Percentiles
from anatomica.spec.asks import Asks, ask, parse_ask


def infeasible(request: Request, plan: Plan, known: Percentiles | None) -> str:
    """Why a request is refused before it is drawn: no patient of the population comes near a target, or no
    label map holds all targets together.

    A target may lie one tolerance beyond the population's extremes. Without a population only what follows
    from the quantities' definitions is refused.
    """
    for key, value in request.targets:
        if known is None or key not in known.quantiles:
            continue
        entry = quantity(plan.spec.anatomy, key)
        room = entry.tolerance * abs(value) / 100 if entry.tolerance_unit == "%" else entry.tolerance
        low, high = known.value(key, 0), known.value(key, 100)
        if not low - room <= value <= high + room:
            return f"{key} = {value:.4g}; the training population has {low:.4g} to {high:.4g}"
    wanted = asked(request)
    if wanted is None:
        return ""
    about = anatomy(plan.spec.anatomy)
    try:
        goals = resolve_asks([parse_ask(text, about) for text in wanted.texts], about, None, False, _never)
        refuse_infeasible(goals, known)
    except AnatomicaError as error:
        return str(error)
    return ""


def refuse_hopeless(plan: Plan, known: Percentiles | None) -> None:
    """An error if a condition of the spec excludes every patient like the population's."""
    about = anatomy(plan.spec.anatomy)
    for one in (*plan.include, *(c for name in plan.spec.strata for c in plan.stratum(name))):
        if known is None or one.key not in known.quantiles:
            continue
        low, high = limits_of(one.key, known, about)
        if one.range[0] > high or one.range[1] < low:
            there = f"{known.value(one.key, 0):.4g} to {known.value(one.key, 100):.4g}"
            raise AnatomicaError(
                f"no patient is expected to meet {str(one)!r}: the training population has {there}"
            )


def asked(request: Request) -> Asks | None:
    """What a request asks of `generate`; None if nothing."""
    return ask(dict(request.targets)) if request.targets else None


def _never(key: str, percent: float) -> float:
    raise AssertionError(f"a request for {key} is a number, not p{percent:g}")
