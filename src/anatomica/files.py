"""Files that are written whole or not at all."""

from __future__ import annotations

import json
import os
from pathlib import Path


def write_atomic(path: Path, data: bytes) -> None:
    """Write a file whole or not at all: into a hidden temporary file beside it, then rename."""
    temporary = path.parent / f".{path.name}.{os.getpid()}.tmp"
    try:
        temporary.write_bytes(data)
        os.replace(temporary, path)
    finally:
        temporary.unlink(missing_ok=True)


def write_json(path: Path, content: object) -> None:
    write_atomic(path, (json.dumps(content, indent=1, sort_keys=True) + "\n").encode())
