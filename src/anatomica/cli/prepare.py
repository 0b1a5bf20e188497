"""`anatomica prepare SOURCE`: bring a data set, or phantoms, into a cache that training reads."""

from __future__ import annotations

import json
import os
import re
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from anatomica.cli.anatomies import ANATOMY_HELP, PHANTOM_HELP
from anatomica.cli.output import Output, with_output
from anatomica.errors import AnatomicaError

if TYPE_CHECKING:
    from anatomica.anatomy.catalogue import Anatomy
    from anatomica.anatomy.nifti import Mapping
    from anatomica.data.cache import Cache
    from anatomica.data.prepare import Item

prepare = typer.Typer(
    name="prepare",
    no_args_is_help=True,
    rich_markup_mode="markdown",
    help="""Bring a data set, or phantoms, into a **cache** that training reads.

A cache holds one NIfTI label map per case, in its anatomy's frame, and `manifest.json` with each case's
source hash, split, affine, tissues and volumes, and the reason for each case that was left out. 80 % of the
patients are for training and 20 % for validation, decided by a hash of the patient's id. A run that was
killed goes on when it is started again and ends in the same files.""",
)


AnatomyOption = Annotated[
    str, typer.Option("--anatomy", "-a", help=f"Whose tissues and frame: {ANATOMY_HELP}")
]
Root = Annotated[Path, typer.Option("--root", help="The data set's folder.")]
Out = Annotated[Path, typer.Option("--out", "-o", help="The cache's folder; made if it is not there.")]
Resolution = Annotated[
    int, typer.Option("--resolution", "-n", min=8, max=512, help="Voxels per edge; the paper's is 128.")
]
Workers = Annotated[
    int, typer.Option("--workers", "-j", min=0, max=1024, help="Processes; 0 takes one per core.")
]
Missing = Annotated[
    bool,
    typer.Option("--missing/--no-missing", help="Leave out a case that lacks a tissue the anatomy needs."),
]
Border = Annotated[
    bool,
    typer.Option(
        "--border/--no-border", help="Leave out a case whose main tissues are cut by the scan's edge."
    ),
]
Volume = Annotated[
    bool, typer.Option("--volume/--no-volume", help="Leave out a case with a volume that no patient has.")
]
Labels = Annotated[
    str | None,
    typer.Option(
        "--labels", help="What the labels mean: a vocabulary's name or a YAML file with lines like `5: RV`."
    ),
]


@prepare.command()
@with_output
def phantoms(
    output: Output,
    anatomy: Annotated[str, typer.Option("--anatomy", "-a", help=PHANTOM_HELP)],
    out: Out,
    count: Annotated[int, typer.Option("--count", min=1, help="How many patients.")] = 200,
    seed: Annotated[int, typer.Option("--seed", min=0, help="The first patient's number.")] = 0,
    resolution: Resolution = 64,
    workers: Workers = 1,
) -> None:
    """Made-up patients, each with its truth in a JSON file: training without any data set.

    Example: `anatomica prepare phantoms --anatomy cardiac --count 500 --out caches/cardiac`
    """
    from anatomica.data.sources.phantoms import build_phantom_cache

    shown = not output.quiet
    made = build_phantom_cache(anatomy, count, out, resolution, seed, _processes(workers), progress=shown)
    _tell(output, made)


@prepare.command()
@with_output
def totalsegmentator(
    output: Output,
    anatomy: AnatomyOption,
    root: Root,
    out: Out,
    resolution: Resolution = 128,
    workers: Workers = 0,
    missing: Missing = True,
    border: Border = True,
    volume: Volume = True,
) -> None:
    """TotalSegmentator's data set (`sNNNN/segmentations/*.nii.gz`): cardiac, aortic, or your own anatomy.

    A tissue is the mask that has one of the tissue's names: give TotalSegmentator's name as a synonym.

    Heart chambers are taken from `sNNNN/heartchambers_highres` (masks, or one .nii.gz) where it is there: the
    output of `TotalSegmentator --task heartchambers_highres`. Version 2 has no chambers of its own.

    Example: `anatomica prepare totalsegmentator --anatomy aortic --root totalsegmentator_v2 --out aorta`
    """
    from anatomica.data.sources import totalsegmentator as source

    about = _anatomy(anatomy)
    items = source.items(_folder(root, out), about)
    _prepare(output, items, "totalsegmentator", about, out, resolution, workers, (missing, border, volume))


@prepare.command()
@with_output
def ctspine1k(
    output: Output,
    root: Root,
    out: Out,
    anatomy: AnatomyOption = "spinal",
    resolution: Resolution = 128,
    workers: Workers = 0,
    missing: Missing = True,
    border: Border = True,
    volume: Volume = True,
) -> None:
    """CTSpine1K (`raw_data/labels/<subset>/*_seg.nii.gz`): spinal.

    Example: `anatomica prepare ctspine1k --root CTSpine1K --out caches/spinal`
    """
    from anatomica.data.sources import spines

    about = _anatomy(anatomy)
    items = spines.ctspine1k_items(_folder(root, out), about)
    _prepare(output, items, "ctspine1k", about, out, resolution, workers, (missing, border, volume))


@prepare.command()
@with_output
def verse(
    output: Output,
    root: Root,
    out: Out,
    anatomy: AnatomyOption = "spinal",
    resolution: Resolution = 128,
    workers: Workers = 0,
    missing: Missing = True,
    border: Border = True,
    volume: Volume = True,
) -> None:
    """VerSe 2019 or 2020 (`derivatives/sub-*/*_seg-vert_msk.nii.gz`): spinal.

    Example: `anatomica prepare verse --root dataset-verse19training --out caches/verse`
    """
    from anatomica.data.sources import spines

    about = _anatomy(anatomy)
    items = spines.verse_items(_folder(root, out), about)
    _prepare(output, items, "verse", about, out, resolution, workers, (missing, border, volume))


@prepare.command(name="disrupt-cad")
@with_output
def disrupt_cad(
    output: Output,
    root: Root,
    out: Out,
    anatomy: AnatomyOption = "coronary",
    labels: Labels = None,
    crops: Annotated[int, typer.Option("--crops", min=1, help="Random windows of 12.8 mm per pullback.")] = 3,
    resolution: Resolution = 128,
    workers: Workers = 0,
    missing: Missing = True,
    border: Border = True,
    volume: Volume = True,
) -> None:
    """DISRUPT-CAD pullbacks (NIfTI in mm, frames along the third axis; 1 lumen, 2 calcium, 3 wall): coronary.

    Example: `anatomica prepare disrupt-cad --root pullbacks --out caches/coronary`
    """
    from anatomica.data.sources import disrupt_cad as source

    about = _anatomy(anatomy)
    mapping, options = _mapping(labels, about)
    items = source.items(_folder(root, out), about, mapping, crops)
    # The window is named so that a cache of windows of 128 frames, whatever their length, is not added to.
    options = (*options, ("crops", str(crops)), ("window_mm", f"{about.edge_mm:g}"))
    _prepare(
        output, items, "disrupt-cad", about, out, resolution, workers, (missing, border, volume), options
    )


@prepare.command()
@with_output
def generic(
    output: Output,
    anatomy: AnatomyOption,
    root: Root,
    out: Out,
    labels: Labels = None,
    patient: Annotated[
        str | None,
        typer.Option(
            "--patient", help="Regular expression for the patient in a file's path, such as `sub-([^_/]+)`."
        ),
    ] = None,
    resolution: Resolution = 128,
    workers: Workers = 0,
    missing: Missing = True,
    border: Border = True,
    volume: Volume = True,
) -> None:
    """Any folder of multi-label NIfTI files, with `--labels` to say what the labels mean.

    Scans of one patient must stay in one split: name the patient by `--patient` where a patient has several.

    Examples:

    - `anatomica prepare generic --anatomy cardiac --root scans --labels mine.yaml --out caches/mine`

    - `anatomica prepare generic --anatomy pelvis.yaml --root scans --out caches/pelvis`
    """
    from anatomica.data.sources import generic as source

    about = _anatomy(anatomy)
    mapping, options = _mapping(labels, about)
    items = source.items(_folder(root, out), about, mapping, patient)
    _prepare(output, items, "generic", about, out, resolution, workers, (missing, border, volume), options)


def _prepare(
    output: Output,
    items: list[Item],
    source: str,
    about: Anatomy,
    out: Path,
    resolution: int,
    workers: int,
    rules: tuple[bool, bool, bool],
    options: tuple[tuple[str, str], ...] = (),
) -> None:
    from anatomica.data.exclusion import Rules
    from anatomica.data.prepare import Job, prepare

    job = Job(out, about, resolution, source, Rules(*rules), options)
    _tell(output, prepare(items, job, _processes(workers), progress=not output.quiet))


def _tell(output: Output, cache: Cache) -> None:
    """What there is now: cases, how many of them each rule left out, and tissues that some of them lack."""
    from collections import Counter

    train = len(cache.split("train"))
    output.print(
        f"{cache.folder}: {len(cache.cases)} cases at {cache.n}^3 ({train} train, {len(cache.cases) - train} "
        f"validation), {len(cache.excluded)} left out"
    )
    rules = re.compile(r"(?:^|; )(missing|border|volume|unreadable|failed): ")
    why = Counter(rule for e in cache.excluded for rule in sorted({*rules.findall(e.reason)}))
    for reason, count in why.most_common():
        output.print(f"  {reason}: {count}")
    if not cache.cases:
        off = ", ".join(f"--no-{rule}" for rule in ("missing", "border", "volume") if rule in why)
        hint = f" ({off} switches these rules off; then choose another --out)" if off else ""
        raise AnatomicaError(f"{cache.folder}: no case is left; manifest.json says why for each{hint}")
    tissues = Counter(t for case in cache.cases for t in case.present)
    some = [t for t in cache.anatomy.table.tissues if tissues[t] < len(cache.cases)]
    if some:
        output.print("  not in every case: " + ", ".join(f"{t} ({tissues[t] or 'none'})" for t in some))
    output.result(
        {
            "folder": cache.folder,
            "resolution": cache.n,
            "cases": len(cache.cases),
            "train": train,
            "left_out": len(cache.excluded),
            "reasons": dict(why.most_common()),
            "tissues": {tissue: tissues[tissue] for tissue in cache.anatomy.table.tissues},
        }
    )


def _mapping(labels: str | None, about: Anatomy) -> tuple[Mapping, tuple[tuple[str, str], ...]]:
    """The label mapping, and its content for the cache's settings (a file may change under its name).

    A line that names no tissue is refused here, once, and not as a fault of every file.
    """
    from anatomica.anatomy.vocabularies import Vocabulary, resolve, translate

    mapping = resolve(labels)
    if mapping is None:
        return None, ()
    if isinstance(mapping, Vocabulary):
        return mapping, (("labels", mapping.name),)
    translate({-i: str(key) for i, key in enumerate(mapping, start=1)}, about, mapping, str(labels))
    return mapping, (("labels", json.dumps({str(k): v for k, v in mapping.items()}, sort_keys=True)),)


def _anatomy(name_or_path: str) -> Anatomy:
    from anatomica.anatomy.catalogue import anatomy

    return anatomy(name_or_path)


def _folder(root: Path, out: Path) -> Path:
    """The root, if it is a folder and the cache cannot get in its way."""
    if not root.is_dir():
        raise AnatomicaError(f"{root}: no such folder")
    if out.resolve().is_relative_to(root.resolve()):
        raise AnatomicaError(f"--out {out} lies inside --root {root}; a cache would be taken for data")
    if root.resolve().is_relative_to(out.resolve()):
        raise AnatomicaError(f"--root {root} lies inside --out {out}; a cache would be written over the data")
    return root


def _processes(workers: int) -> int:
    return workers or os.cpu_count() or 1


def register(app: typer.Typer) -> None:
    """Add `prepare` to the command line."""
    app.add_typer(prepare)
