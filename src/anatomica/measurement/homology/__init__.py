"""Persistent homology of volumes with locations, and hard Betti numbers."""

from anatomica.measurement.homology.betti import Betti, betti_numbers
from anatomica.measurement.homology.diagram import Diagram
from anatomica.measurement.homology.pairs import PersistencePairs, persistence_pairs
from anatomica.measurement.homology.persistence import persistence

__all__ = ["Betti", "Diagram", "PersistencePairs", "betti_numbers", "persistence", "persistence_pairs"]
