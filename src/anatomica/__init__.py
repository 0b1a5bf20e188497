"""Anatomica: 3D anatomical label maps under localized geometric and topological constraints.

>>> from anatomica import task
>>> task("calcium-count").constraints[0].structure
['Ca']
"""

import importlib
from typing import TYPE_CHECKING

from anatomica.version import __version__

# Where each public name lives; imported on first use, so that a command's --help need not load torch.
_HOMES = {
    "ANATOMIES": "anatomy.catalogue",
    "AnatomicaError": "errors",
    "LabelMap": "anatomy.label_map",
    "LabelTable": "anatomy.labels",
    "Options": "generation.options",
    "Spec": "spec.spec",
    "ask": "spec.asks",
    "generate": "generation.draw",
    "load": "anatomy.nifti",
    "load_model": "prior.zoo",
    "load_spec": "spec.yaml",
    "measure": "measurement.measure",
    "save": "anatomy.nifti",
    "task": "spec.tasks",
}
__all__ = [
    "ANATOMIES",
    "AnatomicaError",
    "LabelMap",
    "LabelTable",
    "Options",
    "Spec",
    "__version__",
    "ask",
    "generate",
    "load",
    "load_model",
    "load_spec",
    "measure",
    "save",
    "task",
]

if TYPE_CHECKING:
    from anatomica.anatomy.catalogue import ANATOMIES
    from anatomica.anatomy.label_map import LabelMap
    from anatomica.anatomy.labels import LabelTable
    from anatomica.anatomy.nifti import load, save
    from anatomica.errors import AnatomicaError
    from anatomica.generation.draw import generate
    from anatomica.generation.options import Options
    from anatomica.measurement.measure import measure
    from anatomica.prior.zoo import load_model
    from anatomica.spec.asks import ask
    from anatomica.spec.spec import Spec
    from anatomica.spec.tasks import task
    from anatomica.spec.yaml import load_spec


def __getattr__(name: str):
    if name not in _HOMES:
        raise AttributeError(f"module 'anatomica' has no attribute {name!r}")
    return getattr(importlib.import_module(f"anatomica.{_HOMES[name]}"), name)
