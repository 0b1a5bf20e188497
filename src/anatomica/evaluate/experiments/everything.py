"""All experiments one after another: first what they will take, then the runs, then the page."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

from anatomica.errors import AnatomicaError
from anatomica.evaluate.experiments import asks, composition
from anatomica.evaluate.experiments.catalogue import EXPERIMENTS
from anatomica.evaluate.experiments.estimate import Estimate, in_words
from anatomica.evaluate.experiments.lab import Lab
from anatomica.evaluate.experiments.page import PAGES, update_page
from anatomica.evaluate.experiments.plan import Cell, Profile
from anatomica.evaluate.experiments.runner import Runner

Tell = Callable[[str], None]
RESULTS = Path("results")
"""The tables that the pages of docs show; results that are written elsewhere leave the pages as they are."""


def run_all(lab: Lab, profile: Profile, tell: Tell, out: Path, dry: bool = False) -> dict[str, Any]:
    """Every table and figure, and the pages of docs if they show these.

    Finished samples are not drawn again, so a run that was stopped goes on where it was. With `dry` only the
    estimate is made.
    """
    runner = Runner(lab, profile, tell)
    planned = plan(runner)
    tell("Estimating: one sample of every kind that was never timed on this machine is drawn ...")
    estimates = [runner.estimate(name, cells) for name, cells in planned.items()]
    for line in lines(estimates):
        tell(line)
    found: dict[str, Any] = {"estimates": [e._asdict() for e in estimates], "written": []}
    if dry:
        return found
    for name, cells in planned.items():
        found["written"] += run_one(runner, name, cells, out)
    singles, triples, paper, phantoms = asks.amounts(profile.name)
    asked = asks.run(out, tell, asks.ALL, singles, triples, paper, phantoms, lab.cache, lab.models, lab.half)
    together = composition.run(out, tell, composition.SAMPLES[profile.name], lab.cache, lab.models, lab.half)
    found["written"] += asked["written"] + together["written"]
    for page in (page for page in PAGES if page.is_file() and out.resolve() == RESULTS.resolve()):
        update_page(page, out)
        found["written"].append(page)
    return found


def plan(runner: Runner) -> dict[str, list[Cell]]:
    """The cells of every experiment whose models are there."""
    planned = {}
    for name, chosen in EXPERIMENTS.items():
        try:
            planned[name] = chosen.cells(runner.profile, runner.lab)
        except AnatomicaError as error:
            runner.tell(f"left out: {name}: {error}")
    return planned


def run_one(runner: Runner, name: str, cells: list[Cell], out: Path) -> list[Path]:
    """One experiment's files; none where nothing of it can be run."""
    done = runner.run(cells)
    if not done:
        runner.tell(f"left out: {name}: no model, or no baselines; see above")
        return []
    EXPERIMENTS[name].write(runner, done, out)
    runner.tell(f"wrote {out / name}.md, .json and .png")
    return [out / f"{name}.{kind}" for kind in ("md", "json", "png")]


def lines(estimates: list[Estimate]) -> list[str]:
    """The estimate as a table, the whole last; `asks` and `composition` are not in it."""
    width = max(len(e.experiment) for e in estimates)
    rows = [
        f"{e.experiment:{width}} {e.samples:6} samples, {e.missing:6} missing, about {in_words(e.seconds)}"
        for e in estimates
    ]
    missing, seconds = sum(e.missing for e in estimates), sum(e.seconds for e in estimates)
    rows.append(f"{'all':{width}} {sum(e.samples for e in estimates):6} samples, {missing:6} missing, about ")
    return [*rows[:-1], rows[-1] + in_words(seconds) + "; asks and composition come on top"]
