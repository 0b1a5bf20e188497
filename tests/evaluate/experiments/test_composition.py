"""Random specs of several tasks and quantities: what is in them, and the table that counts them."""

import pytest

from anatomica.anatomy.catalogue import ANATOMIES
from anatomica.evaluate.experiments.asks import Drawn
from anatomica.evaluate.experiments.composition import (
    GEOMETRIC,
    NUMBERS,
    TOPOLOGICAL,
    VOCABULARY,
    composed,
    draws,
    summaries,
    table,
)
from anatomica.spec.tasks import task


@pytest.mark.parametrize("count", NUMBERS)
@pytest.mark.parametrize("turn", range(5))
def test_a_spec_has_so_many_wishes_of_at_least_two_families(count: int, turn: int) -> None:
    spec = composed(count, turn)
    names = spec.name.split(" + ")
    assert len(names) == len(set(names)) == count
    assert len(spec.ask) == sum(name in VOCABULARY for name in names)
    tasks = [name for name in names if name not in VOCABULARY]
    assert list(spec.constraints) == [c for name in tasks for c in task(name).constraints]
    assert set(names) & set(GEOMETRIC)
    assert set(names) & {*TOPOLOGICAL, *VOCABULARY}
    assert len(spec.asks(ANATOMIES["cardiac"])) == len(spec.ask)
    assert composed(count, turn) == spec


def test_draws_have_their_own_seeds_and_patients() -> None:
    found = draws(4, first=1)
    assert len(found) == 4 * len(NUMBERS)
    assert len({one.seed for one in found}) == len({one.like for one in found}) == len(found)


def test_shares_are_counted_by_number_of_constraints() -> None:
    rows = [
        Drawn("cardiac", f"{k} together", ("a",), seed, met, met and seed % 2 == 0, 0.5, 2.0)
        for k, hits in ((2, 3), (5, 1))
        for seed, met in enumerate([True] * hits + [False] * (4 - hits))
    ]
    two, five = summaries(rows)
    assert (two["draws"], two["met"][0], two["valid"][0]) == (4, 75, 50)
    assert (five["met"][0], five["valid"][0]) == (25, 25)
    assert "| 2 together | 4 | 75 [" in table(rows)
