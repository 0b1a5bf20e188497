"""Repair: a piece of a tissue in a place where no training patient has it becomes part of what it touches.

>>> repaired = repair(model, label_map)  # doctest: +SKIP
"""

from anatomica.generation.repair.mending import Repaired, as_in_patients, repair

__all__ = ["Repaired", "as_in_patients", "repair"]
