"""fTetWild in a process of its own, so that Ctrl-C ends it, the bar beside it moves and its memory is
known."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, NamedTuple

import numpy as np
from jaxtyping import Float64, Int32

from anatomica.errors import AnatomicaError

WORKER = Path(__file__).with_name("tetwild_worker.py")
POLL_SECONDS = 0.5


class Made(NamedTuple):
    """What fTetWild made, in the unit of its input, and what it took."""

    vertices: Float64[np.ndarray, "v 3"]
    tetrahedra: Int32[np.ndarray, "m 4"]
    seconds: float
    cpu_seconds: float
    peak_mb: float


def run(arguments: dict[str, Any], tick: Callable[[float], None] | None = None) -> Made:
    """Call `pytetwild.tetrahedralize` with these arguments; `tick` is told the seconds so far, now and
    then."""
    with TemporaryDirectory() as folder:
        given, made = Path(folder, "in.npz"), Path(folder, "out.npz")
        np.savez(given, **arguments)
        started = time.perf_counter()
        worker = subprocess.Popen(
            [sys.executable, str(WORKER), str(given), str(made)],
            stderr=subprocess.PIPE,
            stdout=subprocess.DEVNULL,
            env=os.environ | {"PYTHONWARNINGS": "ignore"},
        )
        try:
            while True:
                try:
                    _, said = worker.communicate(timeout=POLL_SECONDS)
                    break
                except subprocess.TimeoutExpired:
                    if tick is not None:
                        tick(time.perf_counter() - started)
        except BaseException:
            worker.kill()
            worker.wait()
            raise
        if worker.returncode:
            last = (said.decode(errors="replace").strip().splitlines() or ["no message"])[-1]
            if "No module named 'pytetwild'" in last:
                raise AnatomicaError("tetrahedra need pytetwild: pip install 'anatomica[tet]'")
            raise AnatomicaError(f"fTetWild ended with code {worker.returncode}: {last}")
        with np.load(made) as found:
            seconds = time.perf_counter() - started
            took = seconds, float(found["cpu_seconds"]), float(found["peak_mb"])
            return Made(found["vertices"], found["tetrahedra"], *took)
