"""Anatomica: 3D anatomical label maps under localized geometric and topological constraints."""

from anatomica.errors import AnatomicaError
from anatomica.labels import ANATOMIES, LabelTable

__version__ = "0.1.0"
__all__ = ["ANATOMIES", "AnatomicaError", "LabelTable", "__version__"]
