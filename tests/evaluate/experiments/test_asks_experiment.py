"""Which asks are drawn, and how failures are told."""

from dataclasses import asdict

from anatomica.evaluate.experiments.asks import (
    KEYS,
    PAPER,
    PERCENTS,
    Drawn,
    drawn,
    draws,
    failures,
    reference,
    single,
)
from anatomica.evaluate.experiments.store import save_numbers
from anatomica.prior.percentiles import STEPS, Percentiles
from anatomica.prior.zoo import load_model
from anatomica.spec.tasks import task

KEYS_HERE = KEYS["coronary"]
POPULATION = Percentiles(
    {key: tuple(float(1000 * i + p) for p in STEPS) for i, key in enumerate(KEYS_HERE)},
    dict.fromkeys(KEYS_HERE, 100),
    "made up",
)


def test_every_quantity_comes_once_before_any_comes_twice() -> None:
    texts = [x.texts[0] for x in single(POPULATION, "coronary", 25)]
    assert len(set(texts)) == 25
    assert [x.split(" = ")[0] for x in texts[:9]] == list(KEYS_HERE)
    asked = [float(x.split(" = ")[1]) % 1000 for x in texts]
    assert set(asked) == {float(x) for x in PERCENTS}
    assert set(asked[:3]) == set(asked)


def test_a_finished_draw_is_not_drawn_again(tmp_path) -> None:
    first, *_, last = draws(POPULATION, "coronary", 25, 10, 5, 1)
    assert (first.kind, first.seed, first.like) == ("single", 1, None)
    assert (last.kind, last.seed, last.like) == ("paper", 5, 3_000_005)
    known = Drawn("coronary", "single", first.texts, 1, True, False, 0.4, 2.0, (), ("made up",))
    save_numbers(tmp_path / "kept.json", asdict(known))
    # No sample would say these words.
    assert drawn(load_model("coronary"), first, tmp_path / "kept.json") == known


def test_failures_are_counted_by_cause() -> None:
    def drawn(valid: bool, unmet: tuple[str, ...] = (), unusual: tuple[str, ...] = ()) -> Drawn:
        return Drawn("coronary", "single", ("x = 1",), 1, not unmet, valid, 0.0, 1.0, unmet, unusual)

    rows = [
        drawn(True),
        drawn(False, ("lumen.min_area_mm2 equal to 4: 5, field 5 (0.1 allowed)",)),
        drawn(False, ("lumen.min_area_mm2: no lumen in the label map",), ("too much Ca (9 mL)",)),
    ]
    text = failures(rows)
    assert "coronary, 2 of 3: not met, lumen.min_area_mm2 (2); implausible, too much Ca (1)" in text


def test_a_reference_shows_what_the_task_is_about() -> None:
    """The window of phantom 3500002 has none of T6 to T8, so another one is taken."""
    found = reference(load_model("spinal"), task(PAPER["spinal"]), 3_500_002)
    assert all((found.array == found.table[name].id).any() for name in ("T6", "T7", "T8"))


def test_the_papers_task_is_of_the_same_anatomy() -> None:
    """Otherwise no patient has a domain of it, and the experiment ends there."""
    assert PAPER.keys() == KEYS.keys()
    for anatomy, name in PAPER.items():
        assert task(name).anatomy == anatomy
