"""The last resort of the command line: an error that nobody foresaw becomes a sentence and a file.

Only `cli.main` calls it, so tests and library users see the exception itself.
"""

from __future__ import annotations

import platform
import sys
import tempfile
import traceback
from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path

from anatomica.errors import shown
from anatomica.files import write_text
from anatomica.version import __version__


def unforeseen(error: Exception, command: Sequence[str]) -> str:
    """A sentence that names the error, what to do, and the file with the traceback."""
    what = f"{type(error).__name__}: {shown(str(error), 200)}"
    said = f"this should not have happened ({what}); it is an error of anatomica, not yours"
    try:
        path = _log(error, command)
    except OSError as failed:
        return f"{said}; its log could not be written ({failed.strerror}): set ANATOMICA_DEBUG=1 to see it"
    return f"{said}; please report it as CONTRIBUTING.md says, with {path} (it names files of yours)"


def _log(error: Exception, command: Sequence[str]) -> Path:
    now = datetime.now(UTC)
    lines = [
        f"anatomica {__version__}, Python {platform.python_version()}, {platform.platform()}",
        f"{now.isoformat(timespec='seconds')}: {' '.join(command)}",
        *(f"{name} {module.__version__}" for name in ("torch", "numpy") if (module := sys.modules.get(name))),
        "",
        "".join(traceback.format_exception(error)),
    ]
    name = f"anatomica-{now:%Y%m%dT%H%M%S%f}.log"
    path = Path(tempfile.gettempdir()) / name
    write_text(path, "\n".join(lines))
    return path
