"""What the geometric table says of tissues that nothing was asked of."""

from anatomica.anatomy.catalogue import anatomy
from anatomica.evaluate.experiments.geometric import others
from anatomica.evaluate.experiments.plan import Cell
from anatomica.evaluate.experiments.rows import OURS, UNCONDITIONAL
from anatomica.evaluate.experiments.runner import Finished
from anatomica.spec.tasks import task


def drawn(method, shift: dict[str, float]) -> Finished:
    """32 samples whose tissues have 50 to 81 mL, some of them moved."""
    spec = task("right-ventricle")
    tissues = anatomy("cardiac").table.tissues
    numbers = [{"volumes_ml": {t: 50 + i + shift.get(t, 0) for t in tissues}} for i in range(32)]
    return Finished(Cell(spec.name, method, spec, spec, 32), numbers, ("x",) * 32)


def test_the_constrained_tissue_may_change_and_others_are_compared() -> None:
    text = others([drawn(UNCONDITIONAL, {}), drawn(OURS, {"RV": 100})])
    assert "| 9 | 0.00 (" in text
    assert "| 0 [0, 0] (" in text
    moved = others([drawn(UNCONDITIONAL, {}), drawn(OURS, {"LA": 40})])
    assert "1.00 (LA)" in moved
    assert "(LA)" in moved.splitlines()[-1].split("|")[-2]


def test_without_unconditional_samples_nothing_is_said() -> None:
    assert others([drawn(OURS, {})]) == ""
