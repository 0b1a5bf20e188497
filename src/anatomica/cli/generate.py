"""anatomica generate: new patients from a trained model, under constraints, with proof."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from anatomica.cli.anatomies import ANATOMY_HELP
from anatomica.cli.output import Output, with_output
from anatomica.errors import AnatomicaError

if TYPE_CHECKING:
    from anatomica.generation.recipe import Arguments
    from anatomica.prior.zoo import Model

WHAT = "What to generate"
HOW = "How"
BESIDE_A_RECIPE = ("recipe", "model", "device", "out", "mesh", "dry_run", "quiet", "json")


def register(app: typer.Typer) -> None:
    app.command()(with_output(generate))


def generate(
    output: Output,
    ctx: typer.Context,
    of: Annotated[
        str | None,
        typer.Argument(metavar="ANATOMY", help="The same as --anatomy.", show_default=False),
    ] = None,
    *,
    out: Annotated[Path, typer.Option("--out", "-o", help="Folder for label maps, pictures and the report.")],
    anatomy: Annotated[
        str | None,
        typer.Option("--anatomy", "-a", help=ANATOMY_HELP, rich_help_panel=WHAT),
    ] = None,
    task: Annotated[
        str | None,
        typer.Option(help="One of the paper's tasks (see: anatomica tasks).", rich_help_panel=WHAT),
    ] = None,
    spec: Annotated[
        Path | None,
        typer.Option(help="Your own spec as YAML (start from: anatomica tasks show).", rich_help_panel=WHAT),
    ] = None,
    asks: Annotated[
        list[str] | None,
        typer.Option(
            "--set",
            help="A named quantity and what it should be, as often as you like: KEY=45, KEY=40..50, "
            '"KEY<=1.25", KEY=p90, "KEY=+10 %" (see: anatomica quantities).',
            rich_help_panel=WHAT,
        ),
    ] = None,
    like: Annotated[
        Path | None,
        typer.Option(
            help="A label map (NIfTI): domains are placed on it, and what the spec gives no number for is "
            "taken from it.",
            rich_help_panel=WHAT,
        ),
    ] = None,
    like_phantom: Annotated[
        int | None,
        typer.Option(help="The same from the phantom with this seed.", min=0, rich_help_panel=WHAT),
    ] = None,
    labels: Annotated[
        str | None,
        typer.Option(
            help="How --like names its labels: a vocabulary or a YAML mapping.", rich_help_panel=WHAT
        ),
    ] = None,
    recipe: Annotated[
        Path | None,
        typer.Option(
            help="A report.json: make its label maps again. Takes only --model, --device, --mesh and --out.",
            rich_help_panel=WHAT,
        ),
    ] = None,
    samples: Annotated[int, typer.Option("--samples", "-s", min=1, help="How many patients.")] = 8,
    seed: Annotated[int, typer.Option(min=0, help="The first patient's seed; then seed + 1, ...")] = 0,
    until_valid: Annotated[
        int | None,
        typer.Option(
            "--until-valid",
            "--until-met",
            min=1,
            help="Draw a patient up to this often until it is valid: meets its constraints and is plausible. "
            "The best is kept. Default 4, without constraints 12.",
        ),
    ] = None,
    solver: Annotated[
        str,
        typer.Option(
            help="gauss-newton reads the spec's tolerances, gradient (the paper's) its weights.",
            rich_help_panel=HOW,
        ),
    ] = "gauss-newton",
    decoder: Annotated[
        str,
        typer.Option(
            help="What writes the label map: field or conv. gauss-newton guides the field either way; with "
            "--solver gradient the one that writes is guided (the paper's Anatomica-L and Anatomica-V).",
            rich_help_panel=HOW,
        ),
    ] = "field",
    steps: Annotated[
        int | None, typer.Option(min=1, help="Sampling steps; default: the model's.", rich_help_panel=HOW)
    ] = None,
    method: Annotated[
        str | None, typer.Option(help="Sampler: euler, multistep or stochastic.", rich_help_panel=HOW)
    ] = None,
    resolution: Annotated[
        int | None,
        typer.Option(
            "--resolution",
            "-n",
            min=8,
            max=512,
            help="Voxels per edge of the output; the field decodes at any.",
            rich_help_panel=HOW,
        ),
    ] = None,
    model: Annotated[
        Path | None,
        typer.Option(
            "--model", help="A model folder of your own, instead of the shipped one.", rich_help_panel=HOW
        ),
    ] = None,
    batch: Annotated[int, typer.Option(min=1, help="Samples computed together.", rich_help_panel=HOW)] = 8,
    repair: Annotated[
        bool,
        typer.Option(
            "--repair/--no-repair",
            "--mending/--no-mending",
            help="Give pieces of a tissue in places where no training patient has it to what they touch; "
            "--no-repair writes label maps as decoded.",
            rich_help_panel=HOW,
        ),
    ] = True,
    mesh: Annotated[
        list[str] | None,
        typer.Option(
            "--mesh",
            help="Also write surfaces, proved in the report: stl, ply, vtp or gltf, repeatable. For "
            "tetrahedra see: anatomica export.",
        ),
    ] = None,
    device: Annotated[str, typer.Option(help="cpu, cuda, cuda:1, ...", rich_help_panel=HOW)] = "cpu",
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Place and compare what is asked, say the plan, draw nothing.")
    ] = False,
) -> None:
    """Generate label maps, with or without constraints, and say what was asked and what was achieved.

    Examples:

    - `anatomica generate --anatomy cardiac --samples 8 --out out/hearts`

    - `anatomica generate --task right-ventricle --like patient.nii.gz --samples 4 --out out/rv`

    - `anatomica generate aortic --set ao.stj.diameter_mm=32 --set "ao.tortuosity<=1.25" --out out/wide`

    - `anatomica generate --spec big-ventricle.yaml --until-met 4 --out out/big`

    - `anatomica generate --recipe out/rv/report.json --out out/again`

    A spec asks for volumes in mL, centroids in mm (RAS, the cube's centre is 0), shapes as a covariance of
    trace 1 or as semi-axes in mm with turns in degrees, and Betti numbers (components, loops, voids):

    `{name: big RV, anatomy: cardiac, constraints: [{name: RV, structure: [RV],
    domain: {family: global, grid: [64, 64, 64]}, target: {volume_ml: 220}, tolerance: {mass_percent: 2}}]}`

    **Which solver?** `gauss-newton`, the default, has no weights to tune: it steps towards every target at
    once, each error counted in its tolerance (2 %, 1 mm, 0.02 unless the spec says otherwise; Betti numbers
    are exact). `gradient` is the paper's update, by the spec's weights; it needs more steps (`--steps 100`).

    Writes one NIfTI per sample with colour tables and its latent (for `anatomica export`), a contact sheet,
    report.json (with the recipe) and report.html. The final label maps are measured as `anatomica measure`
    does. A target unlike anything in the training population is reported before sampling, and still tried; a
    sample unlike every training patient is named after sampling. Ctrl-C keeps what is finished, with its
    report.
    """
    from anatomica.cli.checks import check_option, usable_device
    from anatomica.cli.sampling import plan, run

    device, surfaces = usable_device(device), check_surfaces(mesh or ())
    if recipe is not None:
        refuse_beside_a_recipe(ctx)
        arguments, prior, wanted, resolved = from_recipe(output, recipe, model, device)
    else:
        from anatomica.cli.measure import pick_spec
        from anatomica.generation.recipe import check_arguments
        from anatomica.generation.resolve import resolve_for, with_asks, with_counts
        from anatomica.prior.zoo import load_model

        paper_v = decoder == "conv" and solver == "gradient"
        arguments = check_arguments(
            like=None if like is None else str(like),
            like_phantom=like_phantom,
            labels=labels,
            samples=samples,
            seed=seed,
            options={
                "guidance": {"solver": solver, "variant": "V" if paper_v else "L"},
                "tries": until_valid,
                "decoder": decoder,
                "steps": steps,
                "method": method,
                "resolution": resolution,
                "batch": batch,
                "repair": repair,
            },
        )
        wanted = pick_spec(task, spec, None)
        if of is not None and anatomy not in (None, of):
            raise AnatomicaError(f"give the anatomy once: {of} or --anatomy {anatomy}")
        anatomy = of or anatomy
        kind = anatomy or (wanted.anatomy if wanted is not None else None)
        if kind is None and model is None:
            raise AnatomicaError("nothing to generate: give --anatomy, --task, --spec, --recipe or --model")
        if wanted is None and not asks and (like is not None or like_phantom is not None):
            raise AnatomicaError("--like gives a spec its targets: add --set, --task or --spec")
        if labels is not None and like is None:
            raise AnatomicaError("--labels says how --like names its labels: give --like FILE too")
        prior = load_model(model if model is not None else str(kind), device)
        check_option(anatomy, prior.about, model if model is not None else "the model")
        wanted = None if wanted is None else wanted.of(prior.about)
        if asks:
            wanted = with_asks(wanted, asks, prior.about)
        wanted = None if wanted is None else with_counts(wanted, prior)
        reference = read_reference(arguments, prior)
        resolved = () if wanted is None else resolve_for(prior, wanted, reference)
    if dry_run:
        plan(output, arguments, prior, wanted, resolved)
    else:
        run(output, out, arguments, prior, wanted, resolved, surfaces)


def check_surfaces(kinds: Sequence[str]) -> tuple[str, ...]:
    """Formats of surfaces, which are cheap enough to be written beside every sample."""
    from anatomica.mesh.formats import SURFACES

    for kind in kinds:
        if kind not in SURFACES:
            raise AnatomicaError(
                f"--mesh {kind!r} is not a format of surfaces; allowed: {', '.join(SURFACES)} (for "
                "tetrahedra: anatomica export)"
            )
    return tuple(kinds)


def refuse_beside_a_recipe(ctx: typer.Context) -> None:
    """An option that the recipe decides already would be ignored."""
    for option in ctx.command.params:
        source = ctx.get_parameter_source(str(option.name))
        if option.name not in BESIDE_A_RECIPE and source is not None and source.name == "COMMANDLINE":
            name = "ANATOMY" if option.name == "of" else option.opts[0]
            raise AnatomicaError(
                f"{name} is decided by the recipe; leave it out (a recipe takes only --model, --device, "
                "--mesh and --out)"
            )


def from_recipe(output: Output, path: Path, folder: Path | None, device: str):
    """Arguments, model, spec and placed constraints of a report.json; the model must be the same one."""
    from anatomica.generation.recipe import changed_versions, read_recipe
    from anatomica.measurement.goals import constraints_in
    from anatomica.measurement.possible import refuse_impossible
    from anatomica.prior.zoo import load_model

    made = read_recipe(path)
    prior = load_model(folder if folder is not None else made.anatomy, device)
    if prior.hash != made.model_hash:
        raise AnatomicaError(
            f"{path} was made by model {made.model_hash}, this {prior.anatomy} model is {prior.hash}: the "
            "label maps would differ; give the right one with --model FOLDER"
        )
    refuse_impossible(constraints_in(made.resolved), prior.frame)
    if changed := changed_versions(made):
        output.print(
            f"warning: {path} was made with {', '.join(changed)}: label maps may differ", style="yellow"
        )
    return made.arguments, dataclasses.replace(prior, sampling=made.sampling), made.spec, made.resolved


def read_reference(arguments: Arguments, model: Model):
    """The anatomy that domains and targets are taken from, if any."""
    from anatomica.anatomy.nifti import load
    from anatomica.data.phantoms import phantom

    if arguments.like is not None and arguments.like_phantom is not None:
        raise AnatomicaError("give --like or --like-phantom, not both")
    if arguments.like is not None:
        return load(Path(arguments.like), model.about, arguments.labels)
    if arguments.like_phantom is not None:
        if model.about.phantom is None:
            raise AnatomicaError(
                f"there are no phantoms of {model.anatomy} anatomy; give a label map by --like"
            )
        return phantom(model.anatomy, arguments.like_phantom, model.n).label_map
    return None
