"""Odd but undamaged label maps: half of an anatomy, one voxel, noise, swapped tissues, only one tissue."""

from __future__ import annotations

import math
import random
from functools import cache

import numpy as np

from anatomica.anatomy.catalogue import ANATOMIES
from anatomica.anatomy.label_map import LabelMap
from anatomica.anatomy.nifti import save
from anatomica.data.phantoms import phantom
from anatomica.errors import AnatomicaError
from anatomica.generation.resolve import resolve_for
from anatomica.measurement.measure import measure
from anatomica.measurement.vocabulary.statistics import statistics
from anatomica.mesh.export import ExportOptions, export
from anatomica.prior.zoo import load_model
from anatomica.spec.ranges import range_of
from anatomica.spec.tasks import TASKS
from fuzz.made import Inputs, Wrong, check_sentence

EDGE = 32
SLACK = 1e-6
shipped_model = cache(load_model)


@cache
def whole(anatomy: str, seed: int) -> LabelMap:
    return phantom(anatomy, seed, EDGE).label_map


def odd_map(anatomy: str, rng: random.Random) -> LabelMap:
    """A phantom with one to three things wrong with it."""
    found = whole(anatomy, rng.randrange(4))
    array, ids = found.array.copy(), found.table.ids
    for _ in range(rng.choice((1, 1, 2, 3))):
        kind, tissue = rng.randrange(10), rng.choice(ids)
        at, axis = rng.randrange(1, EDGE), rng.randrange(3)
        if kind == 0:
            array[array == tissue] = rng.choice(ids)
        elif kind == 1:
            other = rng.choice(ids)
            one, two = array == tissue, array == other
            array[one], array[two] = other, tissue
        elif kind == 2:
            np.moveaxis(array, axis, 0)[:at] = 0
        elif kind == 3:
            array = np.roll(array, at, axis)
        elif kind == 4:
            noise = np.random.default_rng(rng.randrange(2**32))
            where = noise.random(array.shape) < rng.choice((0.001, 0.05, 0.5))
            array[where] = noise.choice(ids, int(where.sum()))
        elif kind == 5:
            kept = np.zeros_like(array)
            box = tuple(slice(max(0, at - 2), at + rng.choice((1, 2, 6))) for _ in range(3))
            kept[box] = array[box]
            array = kept
        elif kind == 6:
            np.moveaxis(array, axis, 0)[at] = tissue
        elif kind == 7:
            array[:] = np.where(array == tissue, array, 0)
        elif kind == 8:
            array[:] = rng.choice((0, tissue, array.max()))
        else:
            array = np.flip(array, axis).copy()
    return LabelMap(array, found.affine, found.table)


def measured_map(made: Inputs, rng: random.Random) -> bool:
    """All named quantities of an odd label map: missing with a reason, or numbers within their definition."""
    name = rng.choice(sorted(ANATOMIES))
    _, found = statistics(odd_map(name, rng), ANATOMIES[name], EDGE)
    for one in found:
        if one.value is None:
            check_sentence(one.reason)
            continue
        known = range_of(one.entry)
        near = SLACK * max(1.0, abs(one.value))
        if not math.isfinite(one.value) or not known.low - near <= one.value <= known.high + near:
            raise Wrong(f"{one.entry.key} = {one.value} is not {known.words}")
    return all(one.value is None for one in found)


def measured_task(made: Inputs, rng: random.Random) -> bool:
    """A task of the paper measured on an odd label map, and taken from it as a reference."""
    name = rng.choice(sorted(TASKS))
    about = ANATOMIES[TASKS[name].anatomy]
    label_map = odd_map(about.name, rng)
    try:
        for one in measure(label_map, TASKS[name], EDGE, about).measured:
            here = one.domains.valid
            if not bool(one.moments.mass[here].isfinite().all()) or bool((one.moments.mass[here] < 0).any()):
                raise Wrong("a volume that is none")
        resolve_for(shipped_model(about.name), TASKS[name], label_map)
    except AnatomicaError as error:
        check_sentence(str(error))
        return True
    return False


def exported_map(made: Inputs, rng: random.Random) -> bool:
    """Surfaces of an odd label map: refused by name, or closed ones whose proof was made."""
    name = rng.choice(sorted(ANATOMIES))
    path, out = made.folder / "odd.nii.gz", made.folder / "surfaces"
    out.mkdir(exist_ok=True)
    save(odd_map(name, rng), path)
    lines = tuple(rng.sample(ANATOMIES[name].table.tissues, rng.choice((0, 0, 1))))
    options = ExportOptions(kinds=(rng.choice(("stl", "ply", "vtp")),), centrelines=lines, overwrite=True)
    try:
        proof = export(path, out, options, ANATOMIES[name]).surface
    except AnatomicaError as error:
        check_sentence(str(error))
        return True
    if proof is None or not all(math.isfinite(t.volume_error) for t in proof.tissues):
        raise Wrong("no proof")
    return False
