"""Meshes of label maps for simulation: conforming surfaces with proof, tetrahedra, files."""

from anatomica.mesh.margin import surface_of_field, surface_of_latent
from anatomica.mesh.proof import Proof, prove
from anatomica.mesh.surface import Surface, surface_of

__all__ = ["Proof", "Surface", "prove", "surface_of", "surface_of_field", "surface_of_latent"]
