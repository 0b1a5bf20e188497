"""What an evaluation keeps, with checksums: a damaged entry counts as missing, and is made again."""

from __future__ import annotations

import hashlib
import io
import zipfile
import zlib
from pathlib import Path
from typing import Any

import numpy as np

from anatomica.files import read_sealed, write_atomic, write_sealed

CHECKSUM = "sha256"


def save_arrays(path: Path, **arrays: np.ndarray) -> None:
    """A compressed npz file with a checksum of its arrays, whole or not at all."""
    data = io.BytesIO()
    np.savez_compressed(data, **arrays, **{CHECKSUM: np.array(_digest(arrays))})  # type: ignore[arg-type]
    path.parent.mkdir(parents=True, exist_ok=True)
    write_atomic(path, data.getvalue())


def load_arrays(path: Path) -> dict[str, np.ndarray] | None:
    """The arrays of a file; None if it is not there or not as it was written."""
    try:
        with path.open("rb") as file, np.load(file) as kept:
            arrays = {name: kept[name] for name in kept.files}
    except (OSError, ValueError, KeyError, EOFError, MemoryError, OverflowError, NotImplementedError):
        return None
    except (zipfile.BadZipFile, zlib.error, SyntaxError, TypeError, RuntimeError):
        return None
    checksum = arrays.pop(CHECKSUM, None)
    return arrays if str(checksum) == _digest(arrays) else None


def save_numbers(path: Path, content: dict[str, Any]) -> None:
    """A JSON file with a checksum of itself."""
    path.parent.mkdir(parents=True, exist_ok=True)
    write_sealed(path, content)


def load_numbers(path: Path) -> dict[str, Any] | None:
    """The content of a JSON file; None if it is not there or not as it was written."""
    try:
        return read_sealed(path, always=True)
    except (OSError, ValueError):
        return None


def _digest(arrays: dict[str, np.ndarray]) -> str:
    total = hashlib.sha256()
    for name in sorted(arrays):
        x = arrays[name]
        total.update(f"{name} {x.dtype.str} {x.shape}".encode())
        total.update(np.ascontiguousarray(x).tobytes())
    return total.hexdigest()
