"""python tetwild_worker.py IN.npz OUT.npz: what `tetwild.run` starts. Imports nothing of anatomica, to
start fast."""

import sys
import time
import types

import numpy as np


def main(given: str, made: str) -> None:
    # pytetwild imports pyvista, 140 MB of VTK with it, to add a method to its meshes. Arrays need neither.
    sys.modules.setdefault("pyvista", types.ModuleType("pyvista"))
    from pytetwild import pytetwild

    with np.load(given) as found:
        arguments = {k: found[k] if found[k].ndim else found[k].item() for k in found.files}
    vertices, tetrahedra = pytetwild.tetrahedralize(**arguments)
    np.savez(
        made,
        vertices=vertices,
        tetrahedra=tetrahedra.astype(np.int32),
        cpu_seconds=time.process_time(),
        peak_mb=peak_mb(),
    )


def peak_mb() -> float:
    """The most memory that this process has had; NaN where the system does not tell (Windows)."""
    try:
        # Linux counts what a process had before it became this program, its parent's memory, in ru_maxrss.
        with open("/proc/self/status", encoding="ascii") as file:
            return next(float(line.split()[1]) / 2**10 for line in file if line.startswith("VmHWM:"))
    except (OSError, StopIteration):
        pass
    try:
        import resource
    except ImportError:
        return float("nan")
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return peak / 2**20 if sys.platform == "darwin" else peak / 2**10  # bytes on macOS, KiB elsewhere


if __name__ == "__main__":
    main(*sys.argv[1:])
