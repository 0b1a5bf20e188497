"""Files that are written whole or not at all: every file that this package writes goes through here."""

from __future__ import annotations

import io
import json
import os
import re
import secrets
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from matplotlib.figure import Figure
    from PIL.Image import Image

UNFINISHED = re.compile(r"\..+\.(\d+|[0-9a-f]{16})\.tmp")
"""Names of files that are being written; what a killed process left is told by it. Earlier versions ended
them with the number of the process."""


class CannotWriteError(OSError):
    """A file could not be written: no space left, no permission. The input is not to blame."""


def write_atomic(path: Path, data: bytes) -> None:
    """Write a file whole or not at all.

    Whatever prevents it is a `CannotWriteError` that names the file, and leaves what was there before.
    """
    write_together({path: data})


def write_together(files: Mapping[Path, bytes]) -> None:
    """Write files that belong together: all go onto the disk under hidden names, then all are renamed.

    Only if every one could be written is any of the old ones replaced; the last is replaced last.
    """
    hidden: dict[Path, Path] = {}
    path = Path()
    try:
        for path, data in files.items():
            # A long name is cut: with the random digits it may be longer than the file system allows.
            hidden[path] = path.parent / f".{path.name[:48]}.{secrets.token_hex(8)}.tmp"
            with hidden[path].open("xb") as file:
                file.write(data)
                file.flush()
                os.fsync(file.fileno())
        for path, temporary in hidden.items():
            os.replace(temporary, path)
    except OSError as error:
        raise cannot_write(path, error) from error
    finally:
        for temporary in hidden.values():
            with suppress(OSError):
                temporary.unlink(missing_ok=True)


def cannot_write(path: Path, error: OSError) -> CannotWriteError:
    """The system's error as one that names the file, however little the system said."""
    reason = error.strerror or str(error)
    told = f"cannot be written ({reason}); run the same command again when that is mended"
    return CannotWriteError(error.errno, told, str(path))


def write_text(path: Path, text: str) -> None:
    write_atomic(path, text.encode())


def write_json(path: Path, content: object) -> None:
    write_text(path, json.dumps(content, indent=1, sort_keys=True) + "\n")


def figure_png(figure: Figure, **options: Any) -> bytes:
    """A matplotlib figure as the bytes of a PNG file."""
    data = io.BytesIO()
    figure.savefig(data, format="png", **options)
    return data.getvalue()


def write_figure(path: Path, figure: Figure, **options: Any) -> None:
    """A matplotlib figure as a PNG file."""
    write_atomic(path, figure_png(figure, **options))


def write_image(path: Path, image: Image, **options: Any) -> None:
    """A Pillow image as a PNG file."""
    data = io.BytesIO()
    image.save(data, format="PNG", **options)
    write_atomic(path, data.getvalue())


def clear_unfinished(folder: Path) -> None:
    """Delete what a killed process had not finished writing in a folder."""
    for file in folder.iterdir():
        if UNFINISHED.fullmatch(file.name):
            file.unlink(missing_ok=True)
