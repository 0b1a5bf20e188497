"""Files that are written whole or not at all: every file that this package writes goes through here."""

from __future__ import annotations

import hashlib
import io
import json
import os
import re
import secrets
import tempfile
from collections.abc import Iterable, Mapping
from contextlib import suppress
from difflib import get_close_matches
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

if TYPE_CHECKING:
    from matplotlib.figure import Figure
    from PIL.Image import Image

UNFINISHED = re.compile(r"\..+\.(\d+|[0-9a-f]{16})\.tmp")
"""Names of files that are being written; what a killed process left is told by it. Earlier versions ended
them with the number of the process."""


class CannotWriteError(OSError):
    """A file could not be written: no space left, no permission. The input is not to blame."""


def write_atomic(path: Path, data: bytes | Iterable[bytes]) -> None:
    """Write a file whole or not at all, in one piece or piece by piece.

    Whatever prevents it is a `CannotWriteError` that names the file, and leaves what was there before.
    """
    write_together({path: data})


def write_together(files: Mapping[Path, bytes | Iterable[bytes]]) -> None:
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
                file.writelines([data] if isinstance(data, bytes) else data)
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


class Place(NamedTuple):
    """Where a piece lies in a spool."""

    first: int
    size: int


class Spool:
    """Pieces that are too many for the memory, in a file without a name that goes when it is closed."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        try:
            self._file = tempfile.TemporaryFile(dir=folder)  # noqa: SIM115
        except OSError as error:
            raise cannot_write(folder, error) from error
        self._end = 0

    def put(self, data: bytes) -> Place:
        """Append a piece; what is half-written when this fails is written over by the next one."""
        try:
            self._file.seek(self._end)
            self._file.write(data)
            self._file.flush()
        except OSError as error:
            raise cannot_write(self.folder, error) from error
        place = Place(self._end, len(data))
        self._end += len(data)
        return place

    def get(self, place: Place) -> bytes:
        self._file.seek(place.first)
        return self._file.read(place.size)

    def close(self) -> None:
        with suppress(OSError):  # what could not be flushed was said when it was put
            self._file.close()


def write_text(path: Path, text: str) -> None:
    write_atomic(path, text.encode())


def write_json(path: Path, content: object) -> None:
    write_atomic(path, json_bytes(content))


def json_bytes(content: object) -> bytes:
    return (json.dumps(content, indent=1, sort_keys=True) + "\n").encode()


MOST_JSON_BYTES = 1 << 28
"""Of a file that is read whole; a manifest of ten thousand cases has 10 MB."""
CHECKSUM = "checksum"


class DamagedError(ValueError):
    """A file does not hold what was written into it."""


def read_json(path: Path, most: int = MOST_JSON_BYTES) -> Any:
    """The content of a JSON file; whatever is wrong with it is a ValueError in a few words."""
    with path.open("rb") as file:
        data = file.read(most + 1)
    if len(data) > most:
        raise DamagedError(f"it is larger than {most >> 20} MB")
    try:
        return json.loads(data)
    except RecursionError:
        raise DamagedError("it is nested too deeply") from None
    except ValueError as error:  # UnicodeDecodeError is one
        raise DamagedError(f"it is not JSON ({' '.join(str(error).split())})") from None


def sealed(content: Mapping[str, Any]) -> dict[str, Any]:
    """The content with a checksum of itself, for files that a later run trusts."""
    plain = json.loads(json.dumps({k: v for k, v in content.items() if k != CHECKSUM}))
    return plain | {CHECKSUM: _digest(plain)}


def opened(content: Any, always: bool = False) -> dict[str, Any]:
    """What was sealed, without its checksum; a DamagedError if that does not fit.

    Files of earlier versions have no checksum and are taken as they are, unless it must be there `always`.
    """
    if not isinstance(content, dict):
        raise DamagedError("it does not hold one JSON object")
    plain = {k: v for k, v in content.items() if k != CHECKSUM}
    if CHECKSUM not in content and (always or get_close_matches(CHECKSUM, plain, 1)):
        raise DamagedError("it has lost its checksum")
    if CHECKSUM in content and content[CHECKSUM] != _digest(plain):
        raise DamagedError("its checksum does not fit: it was damaged or changed by hand")
    return plain


def read_sealed(path: Path, always: bool = False) -> dict[str, Any]:
    return opened(read_json(path), always)


def write_sealed(path: Path, content: Mapping[str, Any]) -> None:
    write_json(path, sealed(content))


def _digest(plain: Mapping[str, Any]) -> str:
    text = json.dumps(plain, sort_keys=True, separators=(",", ":"))
    return hashlib.sha256(text.encode()).hexdigest()


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


def create_exclusive(path: Path, data: bytes) -> bool:
    """Create a small file; False if it is there already. Of many that try at once exactly one succeeds."""
    try:
        descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o666)
    except FileExistsError:
        return False
    except OSError as error:
        raise cannot_write(path, error) from error
    try:
        with os.fdopen(descriptor, "wb") as file:
            file.write(data)
    except OSError as error:
        path.unlink(missing_ok=True)
        raise cannot_write(path, error) from error
    return True


def clear_unfinished(folder: Path) -> None:
    """Delete what a killed process had not finished writing in a folder."""
    for file in folder.iterdir():
        if UNFINISHED.fullmatch(file.name):
            file.unlink(missing_ok=True)
