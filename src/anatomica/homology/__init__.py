"""Persistent homology of volumes with locations, and hard Betti numbers."""

from anatomica.homology.betti import Betti, betti_numbers
from anatomica.homology.diagram import Diagram
from anatomica.homology.pairs import PersistencePairs, persistence_pairs
from anatomica.homology.persistence import persistence

__all__ = ["Betti", "Diagram", "PersistencePairs", "betti_numbers", "persistence", "persistence_pairs"]
