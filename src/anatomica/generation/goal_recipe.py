"""Asks in a recipe: their bounds as numbers, and the label map on which their levels were placed."""

from __future__ import annotations

import base64
import zlib
from collections.abc import Sequence
from typing import Any

import numpy as np

from anatomica.anatomy.catalogue import Anatomy
from anatomica.anatomy.frame import Frame
from anatomica.anatomy.label_map import LabelMap
from anatomica.measurement.goals import Goal
from anatomica.measurement.vocabulary.subject import Subject
from anatomica.spec.asks import Ask

MOST_VOXELS = 512


def goals_to_dict(goals: Sequence[Goal]) -> dict[str, Any]:
    """Bounds, and the reference's labels (compressed) if levels are placed on it."""
    reference = next((g.reference for g in goals if g.reference is not None), None)
    return {
        "bounds": [{"ask": g.ask.text, "low": g.low, "high": g.high} for g in goals],
        "reference": None if reference is None else _packed(reference.cube),
    }


def goals_from_dict(data: Any, asks: Sequence[Ask], about: Anatomy) -> tuple[Goal, ...]:
    """The goals of a recipe's asks; a ValueError says what does not fit."""
    rows = [] if data is None else data["bounds"]
    if [row["ask"] for row in rows] != [ask.text for ask in asks]:
        raise ValueError("the bounds of its asks are not those of the spec")
    packed = None if data is None else data["reference"]
    reference = None if packed is None else Subject(_unpacked(packed, about), about)
    found = []
    for ask, row in zip(asks, rows, strict=True):
        low, high = (None if row[x] is None else float(row[x]) for x in ("low", "high"))
        if (low is None) != (ask.low is None) or (high is None) != (ask.high is None):
            raise ValueError(f"the bounds of {ask.text!r} are not those of the spec")
        if not all(np.isfinite(x) for x in (low, high) if x is not None):
            raise ValueError(f"the bounds of {ask.text!r} are not finite")
        found.append(Goal(ask, about, low, high, reference))
    return tuple(found)


def _packed(cube: LabelMap) -> dict[str, Any]:
    labels = base64.b64encode(zlib.compress(cube.array.astype(np.uint8).tobytes(), 9)).decode()
    return {"n": cube.shape[0], "labels": labels}


def _unpacked(packed: dict[str, Any], about: Anatomy) -> LabelMap:
    n = packed["n"]
    if not isinstance(n, int) or not 8 <= n <= MOST_VOXELS:
        raise ValueError(f"the reference of its asks has {n!r} voxels along an edge")
    unzip = zlib.decompressobj()
    labels = unzip.decompress(base64.b64decode(packed["labels"]), n**3 + 1)
    if len(labels) != n**3:
        raise ValueError("the reference of its asks is not whole")
    array = np.frombuffer(labels, np.uint8).reshape(n, n, n)
    return LabelMap(array, Frame.model(about, n).affine, about.table)
