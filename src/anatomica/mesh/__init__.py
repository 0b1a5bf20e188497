"""Meshes of label maps for simulation: conforming surfaces with proof, tetrahedra, files."""

from anatomica.mesh.surface import Surface, surface

__all__ = ["Surface", "surface"]
