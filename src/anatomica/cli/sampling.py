"""What `anatomica generate` and `anatomica demo` share: draw samples, save each, report on them all."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import typer

if TYPE_CHECKING:
    from anatomica.cli.output import Output
    from anatomica.generation.feasibility import Comparison
    from anatomica.generation.recipe import Arguments
    from anatomica.generation.sample import Sample
    from anatomica.measurement.placing import Resolved
    from anatomica.prior.zoo import Model
    from anatomica.spec.spec import Spec


def run(
    output: Output,
    out: Path,
    arguments: Arguments,
    prior: Model,
    spec: Spec | None,
    resolved: Sequence[Resolved],
) -> list[Sample]:
    """Generate as the arguments say, save each sample as it is finished, then write the report."""
    from anatomica.anatomy.nifti import save
    from anatomica.cli.checks import writable_folder
    from anatomica.cli.progress import sampling_bar
    from anatomica.generation.draw import draw
    from anatomica.generation.feasibility import compare
    from anatomica.generation.recipe import make_recipe
    from anatomica.report.tables import population_table, report_table, volume_table
    from anatomica.report.write import report_dict, write_report

    writable_folder(out)
    comparisons = compare(prior, resolved)
    if any(c.outside for c in comparisons):
        output.print(population_table(comparisons))
    options = replace(arguments.options, trace=True)
    seeds = range(arguments.seed, arguments.seed + arguments.samples)
    steps = options.sampling(prior).steps
    made: list[Sample] = []
    began = time.perf_counter()

    def keep(sample: Sample) -> None:
        save(sample.label_map, out / f"{prior.anatomy}-{sample.seed:06d}.nii.gz")

    size = options.together(prior, bool(resolved))
    with sampling_bar(output.console, len(seeds), steps, size) as callback:
        stream = draw(prior, seeds, [tuple(resolved)] * len(seeds), options, callback=callback)
        stopped = keep_each(stream, keep, made, size)
    if stopped:
        output.print(f"Stopped: {len(made)} of {len(seeds)} samples are finished and reported.")
        if not made:
            raise typer.Exit(130) from None
    seconds = time.perf_counter() - began
    recipe = make_recipe(prior, spec, resolved, arguments)
    write_report(out, made, spec, resolved, recipe, comparisons)
    output.print(report_table(made) if spec is not None else volume_table(prior, made))
    for line in unlike_training(made):
        output.print(line, style="red")
    for line in remarks(made, resolved, comparisons):
        output.print(line, style="dim")
    met = verdict(made) if spec is not None else ""
    output.print(f"{met}{cost(made, seconds)}, model {prior.hash}; see {out / 'report.html'}")
    output.result({"folder": out, **report_dict(made, resolved, recipe, comparisons)})
    if stopped:
        raise typer.Exit(130)
    return made


def plan(
    output: Output, arguments: Arguments, prior: Model, spec: Spec | None, resolved: Sequence[Resolved]
) -> None:
    """What `run` would do: the constraints as placed, targets beside the population, and the draws."""
    from anatomica.generation.choose import GUIDED_TRIES, TRIES
    from anatomica.generation.feasibility import compare
    from anatomica.measurement.certificate import not_placed, sentences_not_placed
    from anatomica.report.tables import asked_table, population_table

    comparisons = compare(prior, resolved)
    if resolved:
        output.print(asked_table(resolved, prior.frame))
    if any(c.outside for c in comparisons):
        output.print(population_table(comparisons))
    for line in sentences_not_placed(resolved):
        output.print(line, style="dim")
    options = arguments.options
    tries = options.tries or (GUIDED_TRIES if resolved else TRIES)
    last = arguments.seed + arguments.samples - 1
    output.print(
        f"Would draw {arguments.samples} {prior.anatomy} samples (seeds {arguments.seed} to {last}) at "
        f"{options.voxels(prior)}^3 in {options.sampling(prior).steps} steps, up to {tries} candidates each, "
        f"model {prior.hash}. Nothing was drawn or written."
    )
    output.result(
        {
            "spec": None if spec is None else spec.model_dump(mode="json", exclude_none=True),
            "arguments": arguments.model_dump(mode="json"),
            "population": [c.to_dict() for c in comparisons],
            "not_placed": not_placed(resolved),
        }
    )


def cost(made: Sequence[Sample], seconds: float) -> str:
    """How many samples were made, drawn, how fast and with how much memory."""
    from anatomica.machine import peak_memory_mb

    samples = "1 sample" if len(made) == 1 else f"{len(made)} samples"
    peak = peak_memory_mb()
    memory = "" if peak is None else f", peak memory {peak:.0f} MB"
    drawn, rate = sum(s.drawn for s in made), 60 * len(made) / seconds
    return f"{samples} ({drawn} drawn) in {seconds:.1f} s ({rate:.1f} per minute){memory}"


def keep_each(
    stream: Iterable[Sample], keep: Callable[[Sample], None], made: list[Sample], batch: int
) -> bool:
    """Save samples as they come, and list the saved ones in `made`; whether Ctrl-C stopped it.

    All samples of a batch are finished at once, so the first Ctrl-C while one is saved still saves the rest.
    """
    stopped = False
    try:
        for sample in stream:
            try:
                keep(sample)
            except KeyboardInterrupt:
                if stopped:
                    raise
                stopped = True
                keep(sample)
            made.append(sample)
            if stopped and len(made) % batch == 0:
                break
    except KeyboardInterrupt:
        stopped = True
    return stopped


def verdict(made: Sequence[Sample]) -> str:
    """How many samples are valid, and why the others are not."""
    valid, met = sum(s.valid for s in made), sum(s.met for s in made)
    strange = met - valid
    why = [f"{len(made) - met} unmet"] if met < len(made) else []
    why += [f"{strange} met, but implausible"] if strange else []
    aside = f" ({', '.join(why)})" if why else ""
    return f"{valid} of {len(made)} valid{aside}; "


def unlike_training(made: Sequence[Sample]) -> list[str]:
    """A line for each sample that is unlike the training patients, met or not."""
    from anatomica.generation.plausibility import sentence

    return [f"seed {s.seed} is {_state(s)}: {sentence(s.unusual)}" for s in made if s.unusual]


def _state(sample: Sample) -> str:
    return "met, but implausible" if sample.checks and sample.met else "implausible"


def remarks(
    made: Sequence[Sample], resolved: Sequence[Resolved], comparisons: Sequence[Comparison]
) -> list[str]:
    """What the table does not show: domains without a place, targets without comparison, mended voxels."""
    from anatomica.measurement.certificate import sentences_not_placed

    lines = sentences_not_placed(resolved)
    if mended := [s.mended for s in made if s.mended]:
        lines.append(
            f"mended {sum(mended)} misplaced voxels in {len(mended)} of {len(made)} samples "
            "(--no-repair leaves them)"
        )
    lines += [f"{c.constraint}: not compared with the population; {c.note}" for c in comparisons if c.note]
    compared = [c for c in comparisons if not c.note]
    if compared and not any(c.outside for c in compared):
        worst = max(compared, key=lambda c: c.distance / c.limit)
        lines.append(
            f"the compared targets lie within the training population of {worst.patients} patients: "
            f"Mahalanobis distance at most {worst.distance:.1f}, 95 % of patients within {worst.limit:.1f}"
        )
    return lines
