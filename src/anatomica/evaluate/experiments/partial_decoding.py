"""Table "partial decoding strategies": fidelity, quality and speed by decoder, strategy and resolution."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from anatomica.evaluate.experiments import paper
from anatomica.evaluate.experiments.figures import scatter
from anatomica.evaluate.experiments.geometric import floor_lines, speeds
from anatomica.evaluate.experiments.lab import Lab
from anatomica.evaluate.experiments.measures import MEASURES, fidelities
from anatomica.evaluate.experiments.plan import (
    GRADIENT_L,
    GRADIENT_V,
    NEWTON_L,
    Cell,
    Profile,
    changed,
    resampled,
)
from anatomica.evaluate.experiments.quality import qualities
from anatomica.evaluate.experiments.runner import Finished, Runner
from anatomica.evaluate.experiments.tables import beside, conditions, markdown, shown, smallest, write_results
from anatomica.spec.spec import GlobalDomain
from anatomica.spec.tasks import task

NAME = "partial-decoding"
TASK = "right-ventricle"
LEVELS = {"high": 1, "med.": 2, "low": 4}
"""The grid's edge is the model's divided by this: the paper's 128, 64 and 32 of 128."""


def cells(profile: Profile, lab: Lab) -> list[Cell]:
    spec, n = task(TASK), lab.model("cardiac").n
    count, made = profile.slow, []  # of all rows alike: distances grow as sets shrink

    def add(method, guiding, domain: str, level: str) -> None:
        settings = (("domain", domain), ("resolution", level))
        made.append(Cell(TASK, method, guiding, spec, count, settings))

    coarse = changed(spec, domain=GlobalDomain(grid=(n, n, n)))
    for domain, guiding in (("local", spec), ("coarse", coarse)):
        for level, part in LEVELS.items():
            add(GRADIENT_L, resampled(guiding, n // part), domain, level)
    add(GRADIENT_V, resampled(spec, n), "global", "high")
    add(NEWTON_L, spec, "local", "its own")
    return made


def write(runner: Runner, done: Sequence[Finished], out: Path) -> None:
    found, floors = qualities(runner, done)
    errors, speed = [fidelities(f) for f in done], speeds(done)
    best = {key: smallest([e[key].value for e in errors]) for key in MEASURES}
    rows, summary = [], {}
    for i, (f, q) in enumerate(zip(done, found, strict=True)):
        domain, level = f.cell.setting("domain"), f.cell.setting("resolution")
        is_paper = f.cell.method.key != NEWTON_L.key
        known = paper.PARTIAL_DECODING.get((domain, level), (None,) * 6) if is_paper else (None,) * 6
        rows.append(
            [
                f.cell.method.title,
                domain,
                level,
                str(len(f.keys)),
                *(
                    shown(errors[i][k], known[j], best=errors[i][k].value == best[k])
                    for j, k in enumerate(MEASURES)
                ),
                shown(q.fmd, known[3]),
                shown(q.nna, known[4]),
                f"{speed[i][1]:.2f}" + beside(known[5]),
                f"{speed[i][0]:.1f}",
            ]
        )
        summary[f.cell.name] = {k: list(v) for k, v in errors[i].items()} | {
            "quality": q.as_json(),
            "seconds": speed[i][0],
            "speed": speed[i][1],
        }
    header = ("Approach", "Domain", "Res.", "n", "Mass", "Cent.", "Cov.", "FMD", "1-NNA", "Speed", "CPU s")
    text = "# Partial decoding\n\n" + markdown(header, rows) + "\n" + floor_lines(floors)
    text += "Speed is samples per processor second relative to Anatomica-V's. " + conditions(runner, done)
    text += f"\n![speed and fidelity]({NAME}.png)\n"
    write_results(runner, done, out, NAME, text, summary)
    points = [
        (f"{f.cell.method.title}, {f.cell.setting('domain')} {f.cell.setting('resolution')}", s, e)
        for f, (s, _), e in zip(done, speed, errors, strict=True)
    ]
    scatter(out / f"{NAME}.png", points, "processor seconds per sample", MEASURES)
