"""What a table says in counts: every line says what it counts, and what is lost comes first."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from anatomica.evaluate.experiments.quality import Grids
from anatomica.evaluate.experiments.rows import BARE, OURS
from anatomica.evaluate.experiments.runner import Finished
from anatomica.evaluate.experiments.tables import shown
from anatomica.evaluate.metrics.bootstrap import Interval

Values = Callable[[Finished], tuple[Mapping[str, Interval], bool]]
"""A cell's measures, and whether less is better."""


@dataclass(frozen=True)
class Contest:
    """One task and one measure: a row of ours beside the best of its rivals."""

    where: str
    ours: Interval
    rival: Interval
    title: str
    less: bool

    @property
    def tied(self) -> bool:
        return self.ours.value == self.rival.value

    @property
    def won(self) -> bool:
        return (self.ours.value < self.rival.value) == self.less and not self.tied

    @property
    def clear(self) -> bool:
        """Won, and the intervals do not overlap."""
        apart = self.ours.high < self.rival.low if self.less else self.ours.low > self.rival.high
        return self.won and apart

    def __str__(self) -> str:
        return f"{self.where}: {shown(self.ours)}, {self.title} {shown(self.rival)}"


def contests(done: Sequence[Finished], values: Values, key: str, rivals: Sequence[str]) -> list[Contest]:
    """The cells of tasks of which the row `key` and at least one of its rivals were drawn."""
    found = []
    for name in dict.fromkeys(f.cell.task for f in done):
        here = {f.cell.method.key: f for f in done if f.cell.task == name}
        others = [here[k] for k in rivals if k in here]
        if key not in here or not others:
            continue
        own, less = values(here[key])
        for measure, interval in own.items():
            known = [(values(f)[0][measure], f.cell.method.title) for f in others]
            known = [(v, title) for v, title in known if v.value == v.value]
            if known and interval.value == interval.value:
                best, title = sorted(known, key=lambda x: x[0].value if less else -x[0].value)[0]
                found.append(Contest(f"{name}, {measure}", interval, best, title, less))
    return found


def cells_won(done: Sequence[Finished], values: Values, what: str) -> str:
    """Ours against every rival, then both sides without the polish; `what` says what a cell is."""
    drawn = {f.cell.method.key: f.cell.method for f in done}
    rivals = [key for key in drawn if key not in (OURS.key, BARE.key)]
    plain = [k for k in rivals if (g := drawn[k].guidance) is None or not g.polish_steps]
    lines = ""
    for own, against in ((OURS, rivals), (BARE, plain)):
        found = contests(done, values, own.key, against)
        if not found:
            continue
        lost = [c for c in found if not c.won and not c.tied]
        lines += "".join(f"- **Lost** by {own.title}: {c}\n" for c in lost)
        lines += (
            f"- {own.title}: better than every rival in {sum(c.won for c in found)} of {len(found)} cells "
            f"(intervals apart in {sum(c.clear for c in found)}), equal to the best in "
            f"{sum(c.tied for c in found)}, behind in {len(lost)}. A cell is {what}; rivals: "
            f"{', '.join(drawn[k].title for k in against)}.\n"
        )
    return lines


def quality_kept(done: Sequence[Finished], found: Mapping[str, Grids]) -> str:
    """Where samples of a row are further from real patients than unconditional ones, and how often not."""
    lines, counts = "", ""
    for method in dict.fromkeys(f.cell.method for f in done if f.cell.method.guidance is not None):
        kept = total = 0
        for f in (f for f in done if f.cell.method.key == method.key):
            for grid, q, free in found[f.cell.name].pairs():
                for what, own, base in (("FMD", q.fmd, free.fmd), ("1-NNA", q.nna, free.nna)):
                    total += 1
                    kept += own.value <= base.high
                    if own.value > base.high and method.key == OURS.key:
                        where = f"{f.cell.task}, {what} at {grid}: {shown(own)}, unconditional {shown(base)}"
                        lines += f"- **Outside**: {where}\n"
        if total:
            counts += f"{method.title} {kept} of {total}; "
    if not counts:
        return ""
    return lines + (
        "- Quality within the interval of as many unconditional samples, or better (a cell is one task, FMD "
        f"or 1-NNA, at n or 2n): {counts.rstrip('; ')}.\n"
    )


def beside_paper(
    done: Sequence[Finished], values: Values, printed: Callable[[str, str], float | None]
) -> str:
    """Ours beside the numbers that the paper prints for the same task, of other data."""
    total, lost = 0, []
    for f in (f for f in done if f.cell.method.key == OURS.key):
        found, less = values(f)
        for measure, own in found.items():
            known = printed(f.cell.task, measure)
            if known is not None and own.value == own.value:
                total += 1
                if (own.value > known) == less and own.value != known:
                    lost.append(f"{f.cell.task}, {measure}: {shown(own, known)}")
    if not total:
        return ""
    lines = "".join(f"- **Behind the paper's number**: {line}\n" for line in lost)
    return lines + (
        f"- ours beside the best that the paper prints for the task and measure, with either decoder (other "
        f"data): not behind in {total - len(lost)} of {total}.\n"
    )


def paper_claim(
    done: Sequence[Finished], values: Values, keys: Sequence[str], rivals: Sequence[str], said: str
) -> str:
    """The paper's own claim, counted for the paper's update as it is drawn here, with the paper's weights."""
    found = [contests(done, values, key, rivals) for key in keys]
    best: dict[str, bool] = {}
    for c in (c for row in found for c in row):
        best[c.where] = best.get(c.where, False) or c.won
    if not best:
        return ""
    return f"- paper's update {said.format(won=sum(best.values()), total=len(best))}\n"
