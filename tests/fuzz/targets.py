"""What is fed with damaged inputs: its kind, and how many inputs a long run makes of it.

Every target takes a `random.Random`, makes one damaged input and says whether it was refused, or raises. An
input may be answered, if the answer is that of the undamaged file or nothing contradicts it; else it must be
refused by an `AnatomicaError` in one line that names the file or field.
"""

from __future__ import annotations

import random
from collections.abc import Callable
from typing import NamedTuple

from fuzz import command_targets, map_targets, nifti_targets, store_targets, studio_targets, yaml_targets
from fuzz.made import Inputs


class Target(NamedTuple):
    """What is damaged, the function, and the inputs of a long run."""

    kind: str
    feed: Callable[[Inputs, random.Random], bool]
    inputs: int


TARGETS: dict[str, Target] = {
    "nifti-bytes": Target("NIfTI", nifti_targets.nifti_bytes, 2000),
    "nifti-bits": Target("NIfTI", nifti_targets.nifti_bits, 1000),
    "nifti-header": Target("NIfTI", nifti_targets.nifti_header, 2000),
    "nifti-masks": Target("NIfTI", nifti_targets.nifti_masks, 300),
    "upload": Target("NIfTI", nifti_targets.upload, 300),
    "spec-text": Target("YAML", yaml_targets.spec_text, 1200),
    "spec-values": Target("YAML", yaml_targets.spec_values, 1200),
    "record-text": Target("YAML", yaml_targets.record_text, 500),
    "mapping-text": Target("YAML", yaml_targets.mapping_text, 300),
    "cohort-text": Target("YAML", yaml_targets.cohort_text, 500),
    "ask-text": Target("YAML", yaml_targets.ask_text, 1000),
    "ask-placed": Target("YAML", yaml_targets.ask_placed, 1000),
    "patients-table": Target("CSV", yaml_targets.patients_table, 600),
    "map-measured": Target("label map", map_targets.measured_map, 200),
    "map-task": Target("label map", map_targets.measured_task, 100),
    "map-exported": Target("label map", map_targets.exported_map, 100),
    "studio-request": Target("studio", studio_targets.studio_request, 250),
    "model-bytes": Target("model", store_targets.model_bytes, 600),
    "model-card": Target("model", store_targets.model_card, 900),
    "latent-bytes": Target("model", store_targets.latent_bytes, 400),
    "recipe-values": Target("recipe", store_targets.recipe_values, 700),
    "recipe-bytes": Target("recipe", store_targets.recipe_bytes, 500),
    "cache-bytes": Target("cache", store_targets.cache_bytes, 500),
    "cache-values": Target("cache", store_targets.cache_values, 400),
    "store-arrays": Target("store", store_targets.store_arrays, 400),
    "store-numbers": Target("store", store_targets.store_numbers, 400),
    "cohort-plan": Target("store", store_targets.cohort_plan, 400),
    "cohort-record": Target("store", store_targets.cohort_record, 400),
    "command-line": Target("command line", command_targets.command_line, 600),
}
