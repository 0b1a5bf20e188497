"""Write src/anatomica/data/real_hearts.py from a folder of label maps of real hearts.

python tools/real_hearts.py FOLDER mapping.yaml
"""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np

from anatomica.anatomy.catalogue import anatomy
from anatomica.anatomy.nifti import load
from anatomica.data.realism import FEATURES, features

STRUCTURES = ("Myo", "LA", "LV", "RA", "RV")
OUT = Path(__file__).parents[1] / "src/anatomica/data/real_hearts.py"
HEAD = '''"""Sizes, places and extents of the structures of real hearts: means, SDs, volumes' correlations.

Measured by `tools/real_hearts.py` on {count} of the 19 healthy CT subjects of the shape model of Rodero et
al. 2021 (PLoS Comput Biol 17:e1008851), reconstructed and voxelised at 1 mm; statistics are facts.
`anatomica.data.realism` defines the features.
"""

from __future__ import annotations

import numpy as np

from anatomica.data.realism import Reference

# Structure, means and SDs of: {features}
_ROWS = (
'''


def main(folder: str, mapping: str) -> None:
    files = sorted(Path(folder).glob("*.nii*"))
    values = np.stack([features(load(path, anatomy("cardiac"), mapping), STRUCTURES) for path in files])
    text = HEAD.format(count=len(files), features=", ".join(FEATURES))
    mean, sd = (x.reshape(len(STRUCTURES), -1) for x in (values.mean(0), values.std(0, ddof=1)))
    for name, means, sds in zip(STRUCTURES, mean, sd, strict=True):
        both = (" ".join(f"{x:.2f}" for x in row) for row in (means, sds))
        text += '    ("{}", "{}", "{}"),\n'.format(name, *both)
    text += f''')

REFERENCE = Reference(
    source="Rodero 2021, PLoS Comput Biol 17:e1008851, CT, healthy adults",
    count={len(files)},
    structures=tuple(name for name, _, _ in _ROWS),
    mean=np.array([float(x) for _, mean, _ in _ROWS for x in mean.split()]),
    sd=np.array([float(x) for _, _, sd in _ROWS for x in sd.split()]),
)

VOLUME_CORRELATION = np.array(
    {np.round(np.corrcoef(values[:, :: len(FEATURES)].T), 2).tolist()}
)
"""Of the volumes, in the order of the structures."""
'''
    OUT.write_text(text)


if __name__ == "__main__":
    main(*sys.argv[1:])
