"""python tetwild_worker.py IN.npz OUT.npz: what `tetwild.run` starts. Imports nothing of anatomica, to
start fast."""

import resource
import sys
import types

import numpy as np


def main(given: str, made: str) -> None:
    # pytetwild imports pyvista, 140 MB of VTK with it, to add a method to its meshes. Arrays need neither.
    sys.modules.setdefault("pyvista", types.ModuleType("pyvista"))
    from pytetwild import pytetwild

    with np.load(given) as found:
        arguments = {k: found[k] if found[k].ndim else found[k].item() for k in found.files}
    vertices, tetrahedra = pytetwild.tetrahedralize(**arguments)
    used = resource.getrusage(resource.RUSAGE_SELF)
    np.savez(
        made,
        vertices=vertices,
        tetrahedra=tetrahedra.astype(np.int32),
        cpu_seconds=used.ru_utime + used.ru_stime,
        peak_mb=used.ru_maxrss / 1024,
    )


if __name__ == "__main__":
    main(*sys.argv[1:])
