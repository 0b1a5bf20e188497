"""Anatomica: 3D anatomical label maps under localized geometric and topological constraints.

>>> from anatomica import task
>>> task("calcium-count").constraints[0].structure
['Ca']
"""

import importlib
from typing import TYPE_CHECKING

__version__ = "0.1.0"

# Where each public name lives; imported on first use, so that a command's --help need not load torch.
_HOMES = {
    "ANATOMIES": "labels",
    "AnatomicaError": "errors",
    "LabelMap": "volume",
    "LabelTable": "labels",
    "Spec": "spec",
    "generate": "generation",
    "load": "nifti",
    "load_model": "models.zoo",
    "load_spec": "spec_yaml",
    "measure": "measurement",
    "save": "nifti",
    "task": "tasks",
}
__all__ = [
    "ANATOMIES",
    "AnatomicaError",
    "LabelMap",
    "LabelTable",
    "Spec",
    "__version__",
    "generate",
    "load",
    "load_model",
    "load_spec",
    "measure",
    "save",
    "task",
]

if TYPE_CHECKING:
    from anatomica.errors import AnatomicaError
    from anatomica.generation import generate
    from anatomica.labels import ANATOMIES, LabelTable
    from anatomica.measurement import measure
    from anatomica.models.zoo import load_model
    from anatomica.nifti import load, save
    from anatomica.spec import Spec
    from anatomica.spec_yaml import load_spec
    from anatomica.tasks import task
    from anatomica.volume import LabelMap


def __getattr__(name: str):
    if name not in _HOMES:
        raise AttributeError(f"module 'anatomica' has no attribute {name!r}")
    return getattr(importlib.import_module(f"anatomica.{_HOMES[name]}"), name)
