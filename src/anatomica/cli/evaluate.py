"""anatomica evaluate: the paper's tables and figures, made again from a model."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from anatomica.errors import AnatomicaError

RESULTS, QUICK_RESULTS = Path("results"), Path("out/evaluation-quick")


def register(app: typer.Typer) -> None:
    app.command()(evaluate)


def evaluate(
    name: Annotated[
        str,
        typer.Argument(
            help="geometric, topological, partial-decoding, topological-speed, guidance-weight, "
            "softmax-temperature, topological-resolution, multiscale, memorisation; or docs."
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
        typer.Option("--eta", min=0, help="Fresh noise of the multistep sampler; default: the model's."),
    ] = None,
    only: Annotated[
        list[str] | None,
        typer.Option(
            "--only", help="Run these tasks or methods alone, repeatable; --list shows their names."
        ),
    ] = None,
    data: Annotated[
        Path | None,
        typer.Option(
            "--data", "-d", help="Folder with a cache an anatomy (cardiac, ...); default: phantoms."
        ),
    ] = None,
    models: Annotated[
        Path | None,
        typer.Option("--models", help="Folder with a model an anatomy; default: the shipped ones."),
    ] = None,
    baselines: Annotated[
        Path, typer.Option("--baselines", help="What `anatomica train baseline` made.")
    ] = Path("runs/baselines"),
    cache: Annotated[Path, typer.Option("--cache", help="Finished samples are kept here.")] = Path(
        "runs/evaluation"
    ),
    out: Annotated[
        Path | None,
        typer.Option(
            "--out",
            "-o",
            help="Folder for table, numbers and figures; default: results, and out/evaluation-quick for the "
            "quick profile, whose few samples shall not replace better results.",
        ),
    ] = None,
    batch: Annotated[int | None, typer.Option("--batch", min=1, help="Samples computed together.")] = None,
    list_cells: Annotated[bool, typer.Option("--list", help="Say what would be run, and stop.")] = False,
) -> None:
    """Run one experiment and write OUT/NAME.md, OUT/NAME.json and OUT/NAME.png.

    OUT is results/ for the profiles here and paper, and out/evaluation-quick for quick.

    Every sample is kept in the cache under a hash of all that decides it (spec, target, seed, weights, code):
    stop at any time and run the same command again, nothing is drawn twice. With --only the rest of the table
    is filled from the cache, so that parts can be run on different days. Examples:

        anatomica evaluate geometric --profile quick

        anatomica evaluate geometric --profile here --only anatomica-gn --data caches

        anatomica evaluate docs            # puts the tables in results/ into docs/results.md
    """
    from rich.console import Console

    from anatomica.evaluate.experiments.page import update_page

    if out is None:
        out = QUICK_RESULTS if profile == "quick" and name != "docs" else RESULTS
    console = Console(stderr=True, highlight=False, soft_wrap=True)
    if name == "docs":
        filled = update_page(Path("docs/results.md"), out)
        console.print(f"docs/results.md: {', '.join(filled) or 'no results yet'}")
        return
    run(
        name,
        console.print,
        profile,
        samples,
        steps,
        eta,
        only,
        data,
        models,
        baselines,
        cache,
        out,
        batch,
        list_cells,
    )


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
    baselines: Path,
    cache: Path,
    out: Path,
    batch: int | None,
    list_cells: bool,
) -> None:
    """The command without its options' declarations."""
    from dataclasses import replace

    from anatomica.cli.checks import writable_folder
    from anatomica.evaluate.experiments.catalogue import experiment
    from anatomica.evaluate.experiments.lab import Lab
    from anatomica.evaluate.experiments.plan import profile as profile_of
    from anatomica.evaluate.experiments.runner import Runner

    chosen = experiment(name)
    amount = profile_of(profile, samples, steps)
    amount = replace(amount, batch=batch or amount.batch)
    lab = Lab(cache, baselines, amount.phantoms, data, models, eta)
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

    if list_cells:
        for cell in cells:
            tell(f"{cell.task:24} {cell.method.key:14} {cell.count:4} samples  {cell.name}")
        return
    writable_folder(out)
    runner = Runner(lab, amount, tell)
    done = runner.run(cells, mine)
    if not done:
        raise AnatomicaError(f"nothing of {name!r} could be run: no model, or no baselines; see above")
    chosen.write(runner, done, out)
    tell(f"wrote {out / name}.md, .json and .png ({sum(len(f.keys) for f in done)} samples)")
