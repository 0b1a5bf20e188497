"""What a command checks before hours of work: the folder is writable, the device exists, the cache fits."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from anatomica.errors import AnatomicaError

if TYPE_CHECKING:
    from anatomica.anatomy.catalogue import Anatomy


def usable_device(name: str) -> str:
    """The device's name, if this machine has it."""
    import torch

    try:
        torch.zeros(1, device=name).item()
    except (RuntimeError, AssertionError) as error:
        there = ["cpu", *(f"cuda:{i}" for i in range(torch.cuda.device_count()))]
        reason = (str(error).splitlines() or ["it is unknown"])[0].split(". ")[0]
        raise AnatomicaError(
            f"--device {name!r} cannot be used ({reason}); this machine has: {', '.join(there)}"
        ) from None
    return name


def writable_folder(path: Path) -> Path:
    """The folder, made if it is not there, and written to once."""
    from tempfile import TemporaryFile

    try:
        path.mkdir(parents=True, exist_ok=True)
        with TemporaryFile(dir=path):
            return path
    except OSError as error:
        raise AnatomicaError(
            f"--out {str(path)!r} is not a folder that can be written to ({error.strerror or error})"
        ) from None


def check_cache(data: Path, about: Anatomy, owner: Path | str) -> None:
    """Refuse a cache whose anatomy is not that of the run or model it is used with."""
    from anatomica.data.cache import open_cache

    found = open_cache(data).anatomy
    if found.name != about.name:
        raise AnatomicaError(f"{data} holds {found.name} maps, but {owner} is {about.name}")
    if found != about:
        raise AnatomicaError(f"{data} was made with another record of {about.name} anatomy than {owner}")


def check_option(given: str | None, about: Anatomy, owner: Path | str) -> None:
    """Refuse an --anatomy, a name or a YAML file, that is not the anatomy of a cache or model."""
    from anatomica.anatomy.catalogue import anatomy

    if given is None or given == about.name:
        return
    asked = anatomy(given)
    if asked.name != about.name:
        raise AnatomicaError(f"{owner} is of {about.name} anatomy, but --anatomy is {asked.name}")
    if asked != about:
        raise AnatomicaError(
            f"{given} is not the record of {about.name} anatomy that {owner} was made with; leave --anatomy "
            "out to use that one"
        )
