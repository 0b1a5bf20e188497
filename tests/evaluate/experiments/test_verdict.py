"""The lines above a table: what they count, and that losses come first."""

from anatomica.evaluate.experiments.geometric import verdict
from anatomica.evaluate.experiments.measures import values_of
from anatomica.evaluate.experiments.plan import Cell, Method
from anatomica.evaluate.experiments.quality import Grids
from anatomica.evaluate.experiments.rows import BARE, IMPLICIT, OURS, PAPER, POLISHED, TUNED, UNCONDITIONAL
from anatomica.evaluate.experiments.runner import Finished
from anatomica.evaluate.experiments.verdict import cells_won, contests, quality_kept
from anatomica.evaluate.metrics.bootstrap import Interval
from anatomica.evaluate.metrics.quality import Quality
from anatomica.spec.tasks import task

WHAT = "one task and one measure"


def row(name: str, method: Method, *numbers: float) -> Finished:
    """Four samples alike: errors as they are printed, or counts."""
    spec = task(name)
    content: dict = {"betti": list(numbers)}
    if name not in ("calcium-count",):
        scales = zip(("mass", "centroid", "covariance"), (1e5, 1e4, 1e5), numbers, strict=True)
        content = {"fidelity": {key: x / scale for key, scale, x in scales}}
    return Finished(Cell(name, method, spec, spec, 4), [content] * 4, ("x",) * 4)


def test_ours_is_held_against_the_best_of_all_rivals() -> None:
    done = [
        row("right-ventricle", UNCONDITIONAL, 200, 300, 500),
        row("right-ventricle", POLISHED, 3, 9, 30),
        row("right-ventricle", TUNED, 30, 8, 300),
        row("right-ventricle", OURS, 2, 10, 20),
    ]
    found = contests(done, values_of, OURS.key, [UNCONDITIONAL.key, POLISHED.key, TUNED.key])
    assert [(c.won, c.title) for c in found] == [
        (True, POLISHED.title),
        (False, TUNED.title),
        (True, POLISHED.title),
    ]
    said = cells_won(done, values_of, WHAT).splitlines()
    assert said[0].startswith("- **Lost** by ours: right-ventricle, centroid: 10 ")
    assert (
        "better than every rival in 2 of 3 cells (intervals apart in 2), equal to the best in 0, behind in 1"
        in said[1]
    )
    assert f"A cell is {WHAT}; rivals: Uncond., Uncond. + polish, tuned paper's update." in said[1]


def test_without_the_polish_only_rivals_without_it_count() -> None:
    done = [row("right-ventricle", POLISHED, 1, 1, 1), row("right-ventricle", BARE, 5, 5, 5)]
    assert cells_won(done, values_of, WHAT) == ""
    done.append(row("right-ventricle", PAPER, 6, 6, 6))
    assert "ours without polish: better than every rival in 3 of 3" in cells_won(done, values_of, WHAT)


def test_more_is_better_of_counts_and_equal_is_not_won() -> None:
    done = [row("calcium-count", UNCONDITIONAL, 1, 0, 0), row("calcium-count", OURS, 2, 0, 0)]
    found = contests(done, values_of, OURS.key, [UNCONDITIONAL.key])
    assert [(c.won, c.tied) for c in found] == [(True, False), (False, True), (False, True)]


def test_ours_is_not_among_the_rows_that_the_papers_claim_counts() -> None:
    done = [
        row("right-ventricle", IMPLICIT, 10, 10, 10),
        row("right-ventricle", PAPER, 5, 5, 50),
        row("right-ventricle", OURS, 1, 1, 1),
    ]
    said = verdict(done)
    assert "below both baselines in 2 of 3 cells" in said
    assert "not behind in 3 of 3" in said


def test_quality_outside_the_interval_is_named_first() -> None:
    def quality(fmd: float, nna: float) -> Quality:
        around = [Interval(x, 0.8 * x, 1.2 * x) for x in (fmd, nna)]
        return Quality(4, around[0], around[1], Interval(0.5, 0.4, 0.6), 1.0, 0.0)

    done = [row("right-ventricle", OURS, 1, 1, 1)]
    free = quality(50, 0.5)
    found = {done[0].cell.name: Grids(quality(55, 0.5), quality(90, 0.5), free, free)}
    said = quality_kept(done, found).splitlines()
    assert said[0].startswith("- **Outside**: right-ventricle, FMD at 2n: 90 ")
    assert said[1].endswith("ours 3 of 4.")
    assert quality_kept(done, {done[0].cell.name: Grids(free, None, None, None)}) == ""
