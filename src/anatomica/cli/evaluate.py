"""anatomica evaluate: the paper's tables and figures, made again from a model."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, get_args

import typer

from anatomica.cli.numbers import not_negative
from anatomica.cli.output import Output, with_output
from anatomica.errors import AnatomicaError

if TYPE_CHECKING:
    from anatomica.evaluate.experiments.plan import Cell
    from anatomica.evaluate.experiments.runner import Runner

RESULTS, QUICK_RESULTS = Path("results"), Path("out/evaluation-quick")
BASELINES, CACHE = Path("runs/baselines"), Path("runs/evaluation")


def register(app: typer.Typer) -> None:
    app.command()(with_output(evaluate))


def evaluate(
    output: Output,
    name: Annotated[
        str,
        typer.Argument(
            help="geometric, topological, partial-decoding, topological-speed, guidance-weight, "
            "softmax-temperature, topological-resolution, multiscale, memorisation, validity, "
            "paper-weights (tuning), asks, composition; all of them (all); realism (with --against); or docs."
        ),
    ],
    profile: Annotated[
        str,
        typer.Option("--profile", "-p", help="quick (minutes), here (two cores, hours) or paper (a GPU)."),
    ] = "quick",
    samples: Annotated[
        int | None, typer.Option("--samples", "-s", min=2, help="Samples of every cell.")
    ] = None,
    steps: Annotated[int | None, typer.Option("--steps", min=1, help="Sampling steps.")] = None,
    eta: Annotated[
        float | None,
        typer.Option(
            "--eta",
            parser=not_negative,
            metavar="<float>",
            help="Fresh noise of the multistep sampler; default: the model's.",
        ),
    ] = None,
    only: Annotated[
        list[str] | None,
        typer.Option("--only", help="Run only these tasks or methods, repeatable; --list shows their names."),
    ] = None,
    data: Annotated[
        Path | None,
        typer.Option(
            "--data", "-d", help="Folder with one cache per anatomy (cardiac, ...); default: phantoms."
        ),
    ] = None,
    models: Annotated[
        Path | None,
        typer.Option("--models", help="Folder with one model per anatomy; default: the shipped ones."),
    ] = None,
    half: Annotated[
        str,
        typer.Option(
            "--targets",
            help="Whose targets: of test patients (tables) or of development patients (tuning).",
        ),
    ] = "test",
    baselines: Annotated[
        Path, typer.Option("--baselines", help="What `anatomica train baseline` made.")
    ] = BASELINES,
    cache: Annotated[Path, typer.Option("--cache", help="Finished samples are kept here.")] = CACHE,
    out: Annotated[
        Path | None,
        typer.Option(
            "--out",
            "-o",
            help="Folder for table, numbers and figures; default: results, and out/evaluation-quick for the "
            "quick profile, whose few samples should not replace better results.",
        ),
    ] = None,
    against: Annotated[
        Path | None,
        typer.Option("--against", help="realism: a folder of NIfTI label maps of real hearts."),
    ] = None,
    labels: Annotated[
        str | None,
        typer.Option(
            "--labels", help="realism: how these name their labels, a vocabulary or a YAML mapping."
        ),
    ] = None,
    batch: Annotated[int | None, typer.Option("--batch", min=1, help="Samples computed together.")] = None,
    list_cells: Annotated[
        bool, typer.Option("--list", help="Say what would be run and how long it takes, and stop.")
    ] = False,
) -> None:
    """Run one experiment and write OUT/NAME.md (table), OUT/NAME.json (summary) and OUT/NAME.png (figure).

    OUT is results/ for the profiles here and paper, and out/evaluation-quick for quick. The numbers and
    pictures of single samples go into the cache: CACHE/results/NAME-samples.json and .png.

    Every sample is kept in the cache under a hash of all that decides it (spec, target, seed, weights, code):
    stop at any time and run the same command again; nothing is drawn twice. With --only the rest of the table
    is filled from the cache, so that parts can be run on different days. Examples:

        anatomica evaluate geometric --profile quick

        anatomica evaluate geometric --profile here --list    # its rows, and how long they take

        anatomica evaluate geometric --profile here --only ours --only right-ventricle    # one row

        anatomica evaluate paper-weights --profile here --targets development

        anatomica evaluate asks --profile here --only aortic

        anatomica evaluate all --profile here --list     # how long all of it will take here

        anatomica evaluate all --profile here            # every table, then the pages of docs

        anatomica evaluate realism --profile here --against hearts --labels mapping.yaml

        anatomica evaluate docs     # results/ into the pages of docs, older tables marked
    """
    from anatomica.evaluate.experiments.page import PAGES, update_page

    if out is None:
        out = QUICK_RESULTS if profile == "quick" and name != "docs" else RESULTS
    if name == "docs":
        pages = [page for page in PAGES if page.is_file()] or PAGES[:1]
        found = {page: update_page(page, out) for page in pages}
        for page, states in found.items():
            output.print(f"{page}: {len(states)} tables" if states else f"{page}: no results yet")
            for table, state in states.items():
                output.print(f"  {table}: {state}")
        output.result({"pages": {str(page): states for page, states in found.items()}})
        return
    if name == "all":
        if only:
            raise AnatomicaError("evaluate all runs everything; --only goes with one experiment")
        output.result(
            run_everything(
                output,
                profile,
                samples,
                steps,
                eta,
                data,
                models,
                half,
                baselines,
                cache,
                out,
                batch,
                list_cells,
            )
        )
        return
    if list_cells and name in ("asks", "realism", "composition"):
        planned = planned_draws(name, profile, samples, only)
        output.print("\n".join(planned))
        output.result({"planned": planned})
        return
    if name == "asks":
        output.result(run_asks(output.print, profile, samples, only, models, half, cache, out))
        return
    if name == "realism":
        output.result(run_realism(output.print, profile, samples, models, against, labels, out))
        return
    if name == "composition":
        output.result(run_composition(output.print, profile, samples, models, half, cache, out))
        return
    written = run(
        name,
        output.print,
        profile,
        samples,
        steps,
        eta,
        only,
        data,
        models,
        half,
        baselines,
        cache,
        out,
        batch,
        list_cells,
        output.quiet,
    )
    output.result(written)


def planned_draws(name: str, profile: str, samples: int | None, only: list[str] | None) -> list[str]:
    """What an experiment without cells would draw, a line each."""
    from anatomica.evaluate.experiments import asks, composition, realism
    from anatomica.evaluate.experiments.plan import profile as profile_of

    profile = profile_of(profile).name
    if name == "asks":
        singles, triples, paper, _ = asks.amounts(profile)
        counts = f"{samples or singles} single asks, {triples} triples, {paper} of the paper's task"
        return [f"{anatomy}: {counts} {asks.PAPER[anatomy]}" for anatomy in asked_anatomies(only)]
    if name == "realism":
        count = samples or realism.SAMPLES[profile]
        return [f"{count} phantoms, {count} unconditional samples and {count} of {realism.TASK}"]
    found = composition.draws(samples or composition.SAMPLES[profile], asks.FIRST["test"])
    return [f"{one.kind}: {', '.join(one.texts)}" for one in found]


def asked_anatomies(only: list[str] | None) -> Sequence[str]:
    """The anatomies that `evaluate asks` runs; a name that is none of them is an error that lists them."""
    from anatomica.evaluate.experiments import asks

    for name in only or ():
        if name not in asks.ALL:
            raise AnatomicaError(f"--only {name!r} is not an anatomy here: {', '.join(asks.ALL)}")
    return only or asks.ALL


def run_asks(
    tell,
    profile: str,
    samples: int | None,
    only: list[str] | None,
    models: Path | None,
    half: str,
    cache: Path,
    out: Path,
) -> dict[str, Any]:
    """Asks of named quantities, without a reference; --only names anatomies."""
    from anatomica.cli.checks import writable_folder
    from anatomica.evaluate.experiments import asks

    check_half(half)
    singles, triples, paper, phantoms = asks.amounts(profile)
    names = asked_anatomies(only)
    writable_folder(out)
    amounts = samples or singles, triples, paper, phantoms
    found = asks.run(out, tell, names, *amounts, cache, models, half)  # type: ignore[arg-type]
    tell(asks.table(found["summary"]))
    return found


def run_realism(
    tell,
    profile: str,
    samples: int | None,
    models: Path | None,
    against: Path | None,
    labels: str | None,
    out: Path,
) -> dict[str, Any]:
    """Phantoms and samples beside a folder of real hearts."""
    from anatomica.cli.checks import writable_folder
    from anatomica.evaluate.experiments import realism
    from anatomica.evaluate.experiments.plan import profile as profile_of

    if against is None:
        raise AnatomicaError(
            "evaluate realism needs real patients: --against FOLDER of NIfTI files of hearts"
        )
    if not against.is_dir():
        raise AnatomicaError(f"{against} is not a folder of NIfTI files")
    amount = samples or realism.SAMPLES[profile_of(profile).name]
    writable_folder(out)
    found = realism.run(out, tell, against, labels, amount, models)
    tell(f"wrote {out / 'realism.md'} and .json")
    return found


def run_composition(
    tell, profile: str, samples: int | None, models: Path | None, half: str, cache: Path, out: Path
) -> dict[str, Any]:
    """Several of the paper's tasks and named quantities together on one heart."""
    from anatomica.cli.checks import writable_folder
    from anatomica.evaluate.experiments import composition
    from anatomica.evaluate.experiments.plan import profile as profile_of

    check_half(half)
    amount = samples or composition.SAMPLES[profile_of(profile).name]
    writable_folder(out)
    found = composition.run(out, tell, amount, cache, models, half)  # type: ignore[arg-type]
    tell(f"wrote {out / 'composition.md'} and .json")
    return found


def run_everything(
    output: Output,
    profile: str,
    samples: int | None,
    steps: int | None,
    eta: float | None,
    data: Path | None,
    models: Path | None,
    half: str,
    baselines: Path,
    cache: Path,
    out: Path,
    batch: int | None,
    dry: bool,
) -> dict[str, Any]:
    """All experiments; with `dry` only how long they will take."""
    from dataclasses import replace

    from anatomica.cli.checks import writable_folder
    from anatomica.evaluate.experiments.everything import run_all
    from anatomica.evaluate.experiments.lab import Lab
    from anatomica.evaluate.experiments.plan import profile as profile_of

    amount = profile_of(profile, samples, steps)
    amount = replace(amount, batch=batch or amount.batch)
    check_half(half)
    if not dry:
        writable_folder(out)
    lab = Lab(cache, baselines, amount.phantoms, data, models, eta, output.quiet, half)  # type: ignore[arg-type]
    return run_all(lab, amount, output.print, out, dry)


def listed(runner: Runner, cells: Sequence[Cell]) -> dict[str, Any]:
    """Every cell with its samples and the time that they take if none is in the cache."""
    from anatomica.evaluate.experiments.estimate import in_words

    rows, total = [], 0.0
    for cell in cells:
        seconds = cell.count * runner.paces.of(cell)
        total += seconds
        took = "timed here" if runner.paces.knows(cell) else "roughly"
        runner.tell(
            f"{cell.task:24} {cell.method.key:18} {cell.count:4} samples  {in_words(seconds):>8} {took}  "
            f"{cell.name}"
        )
        rows.append(
            {
                "task": cell.task,
                "method": cell.method.key,
                "samples": cell.count,
                "name": cell.name,
                "seconds": round(seconds, 1),
            }
        )
    samples = sum(cell.count for cell in cells)
    runner.tell(f"{samples} samples, about {in_words(total)} of one core if none is in the cache")
    return {"cells": rows, "samples": samples, "seconds": round(total, 1)}


def check_half(half: str) -> None:
    from anatomica.data.cache import Half

    if half not in get_args(Half):
        raise AnatomicaError(f"--targets {half!r} is not one of {', '.join(get_args(Half))}")


def run(
    name: str,
    tell,
    profile: str,
    samples: int | None,
    steps: int | None,
    eta: float | None,
    only: list[str] | None,
    data: Path | None,
    models: Path | None,
    half: str,
    baselines: Path,
    cache: Path,
    out: Path,
    batch: int | None,
    list_cells: bool,
    quiet: bool = False,
) -> dict[str, Any]:
    """The command without its options' declarations; what it says as plain data."""
    from dataclasses import replace

    from anatomica.cli.checks import writable_folder
    from anatomica.evaluate.experiments.catalogue import experiment
    from anatomica.evaluate.experiments.lab import Lab
    from anatomica.evaluate.experiments.plan import profile as profile_of
    from anatomica.evaluate.experiments.runner import Runner

    chosen = experiment(name)
    amount = profile_of(profile, samples, steps)
    amount = replace(amount, batch=batch or amount.batch)
    check_half(half)
    lab = Lab(cache, baselines, amount.phantoms, data, models, eta, quiet, half)  # type: ignore[arg-type]
    cells = chosen.cells(amount, lab)
    known = sorted({c.task for c in cells} | {c.method.key for c in cells})
    for word in only or ():
        if word not in known:
            raise AnatomicaError(f"--only {word!r} is neither a task nor a method here: {', '.join(known)}")
    tasks = {c.task for c in cells}
    named = [w for w in only or () if w in tasks], [w for w in only or () if w not in tasks]

    def mine(cell) -> bool:
        by_task, by_method = named
        return (not by_task or cell.task in by_task) and (not by_method or cell.method.key in by_method)

    runner = Runner(lab, amount, tell)
    if list_cells:
        return listed(runner, [c for c in cells if mine(c)])
    writable_folder(out)
    done = runner.run(cells, mine)
    if not done:
        raise AnatomicaError(f"nothing of {name!r} could be run: no model, or no baselines; see above")
    chosen.write(runner, done, out)
    count = sum(len(f.keys) for f in done)
    tell(f"wrote {out / name}.md, .json and .png ({count} samples)")
    return {
        "experiment": name,
        "samples": count,
        "written": [out / f"{name}.{kind}" for kind in ("md", "json", "png")],
    }
