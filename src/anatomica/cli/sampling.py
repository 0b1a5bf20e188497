"""What `anatomica generate` and `anatomica demo` share: draw samples, save each, report on them all."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Sequence
from contextlib import closing
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import typer

from anatomica.errors import AnatomicaError

if TYPE_CHECKING:
    from anatomica.cli.output import Output
    from anatomica.generation.feasibility import Comparison
    from anatomica.generation.recipe import Arguments
    from anatomica.generation.sample import Outcome, Sample
    from anatomica.measurement.goals import Row
    from anatomica.prior.zoo import Model
    from anatomica.report.tally import Tally
    from anatomica.report.write import Report
    from anatomica.spec.spec import Spec


def run(
    output: Output,
    out: Path,
    arguments: Arguments,
    prior: Model,
    spec: Spec | None,
    resolved: Sequence[Row],
    mesh: Sequence[str] = (),
) -> None:
    """Generate as the arguments say, save each sample as it is finished, then write the report.

    `mesh` are formats of surfaces to write beside the label maps. No more label maps than one batch are in
    memory.
    """
    from anatomica.anatomy.nifti import save
    from anatomica.cli.checks import writable_folder
    from anatomica.cli.progress import sampling_bar
    from anatomica.generation.conflicts import conflicts
    from anatomica.generation.draw import draw
    from anatomica.generation.feasibility import compare
    from anatomica.generation.latent import save_latent
    from anatomica.generation.recipe import make_recipe
    from anatomica.measurement.goals import constraints_in
    from anatomica.report.tables import population_table
    from anatomica.report.write import Report

    writable_folder(out)
    comparisons = compare(prior, resolved)
    if any(c.outside for c in comparisons):
        output.print(population_table(comparisons))
    in_the_way = conflicts(constraints_in(resolved), prior.frame)
    warn(output, in_the_way)
    options = replace(arguments.options, trace=True)
    seeds = range(arguments.seed, arguments.seed + arguments.samples)
    steps, size = options.sampling(prior).steps, options.together(prior, bool(resolved))
    without: list[str] = []
    began = time.perf_counter()
    with closing(Report(out, spec, resolved, prior.about)) as report:

        def keep(sample: Sample) -> None:
            path, proof = out / f"{prior.anatomy}-{sample.seed:06d}.nii.gz", None
            save(sample.label_map, path)
            if options.decoder == "field":
                save_latent(path, sample, prior)
            if mesh:
                from anatomica.mesh.export import ExportOptions, export

                wanted = ExportOptions(kinds=tuple(mesh), overwrite=True)
                try:
                    proof = export(path, out, wanted, find=lambda _: prior).surface
                except AnatomicaError as error:  # the sample itself is there, and the others come
                    without.append(f"seed {sample.seed} has no surface: {error}")
            report.add(sample, proof)

        with sampling_bar(output.console, len(seeds), steps, size) as callback:
            stream = draw(prior, seeds, [tuple(resolved)] * len(seeds), options, callback=callback)
            count, stopped = keep_each(stream, keep, size)
        seconds = time.perf_counter() - began
        if stopped:
            output.print(f"Stopped: {count} of {len(seeds)} samples are finished and reported.")
        for line in without:
            output.print(line)
        if count:
            recipe = make_recipe(prior, spec, resolved, arguments)
            report.write(recipe, comparisons, in_the_way)
            tell(output, report, prior, comparisons, seconds)
            output.result_in_pieces(report.json_text(recipe, comparisons, in_the_way, folder=str(out)))
    if stopped:
        raise typer.Exit(130)


def tell(
    output: Output, report: Report, prior: Model, comparisons: Sequence[Comparison], seconds: float
) -> None:
    """What a finished run says: a table, what is unusual, and the verdict in one line."""
    from anatomica.report.tables import report_table, volume_table

    listed, total = list(report.listed.values()), report.total
    if report.spec is not None:
        output.print(report_table(listed, checks=total.checks))
    else:
        output.print(volume_table(prior, report.volumes))
    for line in unlike_training(listed, total):
        output.print(line, style="red")
    for line in remarks(total, report.resolved, comparisons):
        output.print(line, style="dim")
    for line in mesh_lines(report):
        output.print(line)
    met = verdict(total) if report.spec is not None else ""
    page = report.out / "report.html"
    output.print(f"{met}{cost(total, seconds)}, model {prior.hash}; see {page}")


def warn(output: Output, in_the_way: Sequence[str]) -> None:
    """A line for each conflict between constraints."""
    for line in in_the_way:
        output.print(f"warning: {line}; tried all the same", style="yellow")


def plan(
    output: Output, arguments: Arguments, prior: Model, spec: Spec | None, resolved: Sequence[Row]
) -> None:
    """What `run` would do: the constraints as placed, targets beside the population, and the draws."""
    from anatomica.generation.choose import GUIDED_TRIES, TRIES
    from anatomica.generation.conflicts import conflicts
    from anatomica.generation.feasibility import compare
    from anatomica.measurement.certificate import not_placed, sentences_not_placed
    from anatomica.measurement.goals import constraints_in
    from anatomica.report.tables import asked_table, population_table

    comparisons = compare(prior, resolved)
    if resolved:
        output.print(asked_table(resolved, prior.frame))
    if any(c.outside for c in comparisons):
        output.print(population_table(comparisons))
    in_the_way = conflicts(constraints_in(resolved), prior.frame)
    warn(output, in_the_way)
    for line in (*sentences_not_placed(constraints_in(resolved)), *only_checked(resolved)):
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
            "conflicts": in_the_way,
            "not_placed": not_placed(constraints_in(resolved)),
        }
    )


def cost(total: Tally, seconds: float) -> str:
    """How many samples were made, drawn, how fast and with how much memory."""
    from anatomica.machine import peak_memory_mb

    samples = "1 sample" if total.samples == 1 else f"{total.samples} samples"
    peak = peak_memory_mb()
    memory = "" if peak is None else f", peak memory {peak:.0f} MB"
    rate = 60 * total.samples / seconds
    return f"{samples} ({total.drawn} drawn) in {seconds:.1f} s ({rate:.1f} per minute){memory}"


def keep_each(stream: Iterable[Sample], keep: Callable[[Sample], None], batch: int) -> tuple[int, bool]:
    """Save samples as they come; how many are saved, and whether Ctrl-C stopped it.

    All samples of a batch are finished at once, so the first Ctrl-C while one is saved still saves the rest.
    """
    count, stopped = 0, False
    try:
        for sample in stream:
            try:
                keep(sample)
            except KeyboardInterrupt:
                if stopped:
                    raise
                stopped = True
                keep(sample)
            count += 1
            if stopped and count % batch == 0:
                break
    except KeyboardInterrupt:
        stopped = True
    return count, stopped


def verdict(total: Tally) -> str:
    """How many samples are valid, and why the others are not."""
    count, met, valid = total.samples, total.met, total.valid
    why = [f"{count - met} unmet"] if met < count else []
    why += [f"{met - valid} met, but implausible"] if met > valid else []
    aside = f" ({', '.join(why)})" if why else ""
    return f"{valid} of {count} valid{aside}; "


def mesh_lines(report: Report) -> list[str]:
    """How many surfaces are proved, and a line for each that is not."""
    total = report.total
    if not total.surfaces:
        return []
    lines = [f"seed {seed}, surface: {sentence}" for seed, sentence in report.unproved.items()]
    return [*lines, f"{total.proved} of {total.surfaces} surfaces are proved against their label maps"]


def unlike_training(listed: Sequence[Outcome], total: Tally) -> list[str]:
    """A line for each listed sample that is unlike the training patients, met or not; one for the others."""
    from anatomica.generation.plausibility import sentence

    lines = [f"seed {s.seed} is {_state(s)}: {sentence(s.unusual)}" for s in listed if s.unusual]
    more = total.implausible - len(lines)
    return lines + ([f"{more} more samples are implausible; report.json says why"] if more else [])


def _state(sample: Outcome) -> str:
    return "met, but implausible" if sample.checks and sample.met else "implausible"


def only_checked(resolved: Sequence[Row]) -> list[str]:
    """One sentence for each ask that sampling cannot be led to."""
    from anatomica.measurement.goals import constraints_in, goals_in

    counted = {r.constraint.name for r in constraints_in(resolved)}
    return [
        f"{goal.name} is a count, which has no derivative: it is checked, and samples are drawn again until "
        "it holds (--until-valid K)"
        for goal in goals_in(resolved)
        if not goal.guided and goal.ask.text not in counted
    ]


def remarks(total: Tally, resolved: Sequence[Row], comparisons: Sequence[Comparison]) -> list[str]:
    """What the table does not show: domains without a place, targets without comparison, mended voxels."""
    from anatomica.measurement.certificate import sentences_not_placed
    from anatomica.measurement.goals import constraints_in

    lines = [*sentences_not_placed(constraints_in(resolved)), *only_checked(resolved)]
    if total.mended:
        lines.append(
            f"mended {total.mended} misplaced voxels in {total.mended_samples} of {total.samples} samples "
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
