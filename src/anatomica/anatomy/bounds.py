"""How large an input may be: checked before anything is allocated, and said in one sentence.

Generous beside anything that is measured or drawn here, small beside a machine's memory.
"""

from __future__ import annotations

from anatomica.errors import AnatomicaError

MOST_VOXELS = 512 * 512 * 1600
"""Of one file: a CT from head to foot, 1.6 m in slices of 1 mm."""
LEAST_VOXEL_MM, MOST_VOXEL_MM = 1e-3, 100.0
"""Edges of a voxel: optical coherence tomography has 0.01 mm, a CT's slices 10 mm."""
MOST_MM = 1e5
"""Distance of anything from a scanner's centre, far beyond any scanner."""
MOST_LABELS = 4096
"""Different labels of one file; a file with more is an image."""
MOST_HEADER_BYTES = 1 << 24
"""Of a NIfTI header with its extensions: names and colours of hundreds of labels have 100 kB."""
MOST_TRAILING_BYTES = 1 << 20
"""After the voxels that a NIfTI header announces; more is another file than the header describes."""
MOST_EDGE = 512
"""Voxels along an edge of a cube that a label map is brought into; 512^3 takes about 1.3 GB on the way."""
MOST_GROWN_EDGE = 256
"""The same of a cube that is enlarged to hold all tissue: measuring 256^3 voxels takes about 1.2 GB."""
MOST_SEED = 2**63 - 1
"""The largest number that any library's generator takes."""


def check_seed(seed: int, count: int = 1) -> int:
    """The first of so many seeds that follow each other, if all of them name a patient."""
    if seed < 0 or seed + count - 1 > MOST_SEED:
        which = "" if count == 1 else f" of the first of {count} patients"
        raise AnatomicaError(f"a seed is a whole number from 0 to 2^63 - 1; the seed {seed}{which} is not")
    return seed
