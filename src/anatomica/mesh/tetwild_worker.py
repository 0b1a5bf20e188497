"""python tetwild_worker.py IN.npz OUT.npz: what `tetwild.run` starts. Imports nothing of anatomica, to
start fast."""

import sys
import time
import types

import numpy as np


def peak_mb() -> float:
    """Largest resident memory of this process; NaN where the system does not tell."""
    try:
        import resource
    except ImportError:
        return float("nan")
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


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


if __name__ == "__main__":
    main(*sys.argv[1:])
