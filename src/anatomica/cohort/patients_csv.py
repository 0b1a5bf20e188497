"""A table of patients: one row per patient, columns named after quantities (`anatomica measure`)."""

from __future__ import annotations

import csv
import math
from collections.abc import Sequence
from pathlib import Path

import numpy as np
from jaxtyping import Float

from anatomica.anatomy.strict_yaml import read_text
from anatomica.errors import AnatomicaError, nearest, shown

MOST_BYTES = 1 << 24
"""Of a table; ten thousand patients with a hundred quantities have 10 MB."""
FEWEST = 8
"""Patients of a table whose joint distribution is taken; fewer say nothing about correlations."""


def _rows(path: Path) -> list[list[str]]:
    try:
        return list(csv.reader(read_text(path, "table", MOST_BYTES).splitlines()))
    except csv.Error as error:
        raise AnatomicaError(f"{path} is not a table with commas ({error})") from None


def header(path: Path) -> list[str]:
    """The names of a table's columns."""
    rows = _rows(path)
    return [name.strip() for name in rows[0]] if rows else []


def read_columns(path: Path, columns: Sequence[str]) -> Float[np.ndarray, "m c"]:
    """Some columns of a table as numbers; a gap or a word among them is an error that names its place."""
    rows = _rows(path)
    names = [name.strip() for name in rows[0]] if rows else []
    for name in columns:
        if name not in names:
            raise AnatomicaError(f"{path} has no column {name!r}{nearest(name, names)}")
        if names.count(name) > 1:
            raise AnatomicaError(f"{path} has {names.count(name)} columns {name!r}; leave one of them")
    places = [names.index(name) for name in columns]
    found = []
    for line, row in enumerate(rows[1:], start=2):
        if row:
            found.append([_number(path, line, name, row, i) for name, i in zip(columns, places, strict=True)])
    if len(found) < FEWEST:
        raise AnatomicaError(f"{path} has {len(found)} patients; at least {FEWEST} are needed")
    return np.array(found, dtype=float)


def _number(path: Path, line: int, name: str, row: Sequence[str], place: int) -> float:
    text = row[place].strip() if place < len(row) else ""
    try:
        value = float(text)
    except ValueError:
        value = math.nan
    if not math.isfinite(value):
        what = f"{shown(text)} is no number" if text else "a value is missing"
        raise AnatomicaError(
            f"{path}, line {line}, column {name}: {what}; fill it in, "
            "delete the row, or name the columns to use"
        )
    return value
