"""Commands with odd options and values, run to their end: exit code 0, 1 or 2, one sentence, no traceback."""

from __future__ import annotations

import random
from collections.abc import Sequence
from contextlib import chdir
from typing import Any

import yaml
from typer.main import get_command
from typer.testing import CliRunner

from anatomica.cli import _sentence, app
from anatomica.cohort.spec import EXAMPLE
from anatomica.errors import AnatomicaError
from fuzz.made import SPEC, Inputs, Wrong, check_sentence, put

WORDS = (
    *(
        "0",
        "-1",
        "1",
        "2",
        "7",
        "nan",
        "inf",
        "-inf",
        "1e9",
        "0.5",
        "9" * 30,
        "",
        " ",
        "\0",
        "\n",
        "[/red]",
        "[b]x",
    ),
    *(
        "gpu",
        "cuda:7",
        "cardiac",
        "spinal",
        "coronary",
        "right-ventricle",
        "gradient",
        "conv",
        "euler",
        "quick",
    ),
    *("../x", "--", "-", "\udcff", "lumen.length_mm=3", "a=b=c", "x" * 5000, "é", "/dev/null", "/dev/zero"),
    *("stl,stl", "*", "p90", "verse", "true", "~", "$HOME", "https://example.org/a.nii.gz", "*.nii.gz"),
)
"""Values that one option or another might take, and none of them should be hurt by."""


def command_line(made: Inputs, rng: random.Random) -> bool:
    """A command with one to three odd options or words, run in a folder of its own."""
    commands = _commands(made)
    here = made.folder / "here"
    here.mkdir(exist_ok=True)
    with chdir(here):
        return run(_spoiled(rng.choice(commands), rng))


def options_of(command: Sequence[str]) -> list[str]:
    """The options that a command has."""
    found: Any = get_command(app)
    for word in command:
        if word not in getattr(found, "commands", {}):
            break
        found = found.commands[word]
    return [name for option in found.params for name in option.opts if name.startswith("-")]


def _commands(made: Inputs) -> list[list[str]]:
    """Commands that end soon: what would begin hours of work lacks its data, and must say so."""
    folder = made.folder
    paths = {name: str(folder / name) for name in ("good.yaml", "good.nii.gz", "cohort-good.yaml", "first")}
    if not (folder / "good.yaml").is_file():
        content = yaml.safe_load("{name: a, anatomy: coronary, size: 2}") | {"model": paths["first"]}
        texts = {"good.yaml": SPEC, "cohort-good.yaml": yaml.safe_dump(content), "cohort.yaml": EXAMPLE}
        put(folder, {name: text.encode() for name, text in texts.items()} | {"good.nii.gz": made.nifti})
    model, nifti = paths["first"], paths["good.nii.gz"]
    o, none = str(folder / "o"), str(folder / "nothing")
    drawn = ["-s", "1", "--steps", "1", "--until-valid", "1", "-o", o, "--model", model]
    return [
        ["generate", "--dry-run", *drawn, "--spec", paths["good.yaml"]],
        ["generate", "-n", "8", *drawn],
        ["tasks", "show", "right-ventricle"],
        ["anatomies", "show", "cardiac"],
        ["quantities", "-a", "coronary"],
        ["models", model],
        ["info"],
        ["measure", nifti, "--anatomy", "coronary", "--resolution", "16"],
        ["measure", nifti, "--anatomy", "coronary", "--spec", paths["good.yaml"], "--resolution", "16"],
        ["export", nifti, "--to", "stl", "--out", o],
        ["cohort", "draw", paths["cohort-good.yaml"], "--dry-run", "--out", o],
        ["cohort", "status", none],
        ["cohort", "init", paths["good.yaml"]],
        ["evaluate", "geometric", "--models", none, "--data", none, "--cache", o, "--out", o],
        ["train", "autoencoder", "-d", none, "-o", o],
        ["train", "denoiser", "-d", none, "-o", o],
        ["train", "export", none, "--data", none, "--out", o],
        ["prepare", "phantoms", "-a", "coronary", "--count", "0", "-o", o],
        ["prepare", "folder", "-a", "coronary", "--root", none, "-o", o],
        ["phantom", "coronary", "--seed", "-1"],
    ]


def _spoiled(command: Sequence[str], rng: random.Random) -> list[str]:
    spoiled, own = list(command), options_of(command)
    first = 2 if command[0] in ("tasks", "anatomies", "cohort", "train", "prepare") else 1
    for _ in range(rng.choice((1, 1, 2, 3))):
        kind, at = rng.randrange(8), rng.randrange(first, max(first, len(spoiled)) + 1)
        if kind == 0 and at < len(spoiled):
            del spoiled[at]
        elif kind == 1 and at < len(spoiled):
            spoiled[at] = rng.choice(WORDS)
        elif kind == 2:
            spoiled[at:at] = [rng.choice(WORDS)]
        elif own:
            spoiled += [rng.choice(own), *rng.choices(WORDS, k=rng.choice((0, 1, 1, 1, 1)))]
    return spoiled


def run(command: Sequence[str]) -> bool:
    """Whether the command was refused; Wrong if it was not refused as it should be."""
    result = CliRunner().invoke(app, list(command))
    error = result.exception
    if isinstance(error, AnatomicaError | OSError | MemoryError):
        try:
            check_sentence(" ".join(_sentence(error).split()))  # as the door prints it
        except Wrong as wrong:
            raise Wrong(f"{command}: {wrong}") from error
    elif error is not None and not isinstance(error, SystemExit):
        raise RuntimeError(f"{command}: {type(error).__name__}: {error}") from error
    elif result.exit_code not in (0, 1, 2):
        raise Wrong(f"{command}: exit code {result.exit_code}")
    return error is not None and result.exit_code != 0
