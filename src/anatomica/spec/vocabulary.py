"""The vocabulary: clinical quantities by name, with unit, definition and source. No measuring happens here.

A key is read from the left: what, where, and at its end the quantity with its unit (`lv.volume_ml`,
`ao.mid_ascending.diameter_mm`). `spec.vocabulary_tables` lists them; `anatomica.measurement.vocabulary` says
how each is measured.
"""

from __future__ import annotations

import re
from functools import cache

from anatomica.anatomy.catalogue import Anatomy
from anatomica.errors import AnatomicaError, nearest
from anatomica.spec.relations import LEAST, UNITS, relation, templates
from anatomica.spec.vocabulary_tables import COBB, TABLES, VERTEBRAE, Entry

_COBB = re.compile(r"^cobb(_coronal)?_deg\[\s*(\w+)\s*,\s*(\w+)\s*\]$")


@cache
def entries(anatomy: str) -> tuple[Entry, ...]:
    """The named quantities of an anatomy, in the order of its tables; none of one that is a user's own."""
    table = TABLES.get(anatomy)
    return () if table is None else tuple(table())


@cache
def _by_key(anatomy: str) -> dict[str, Entry]:
    return {e.key.lower(): e for e in entries(anatomy)}


def lookup(about: Anatomy, key: str) -> Entry:
    """The quantity that a key names; an error with the nearest key if there is none.

    >>> from anatomica.anatomy.catalogue import ANATOMIES
    >>> lookup(ANATOMIES["aortic"], "ao.mid_ascending.diameter_mm").unit
    'mm'
    >>> lookup(ANATOMIES["spinal"], "cobb_deg[T5,T12]").parts
    ('T5', 'T12', 'sagittal')
    """
    anatomy, key = about.name, key.strip()
    if anatomy == "spinal" and (found := _COBB.match(key)):
        return _cobb(bool(found[1]), found[2].upper(), found[3].upper())
    if (found := relation(key, about)) is not None:
        kind, written, parts, meaning = found
        return _relation(about, kind, written, meaning, UNITS[kind], parts)
    known = _by_key(anatomy)
    entry = known.get(key.lower())
    if entry is None:
        if not known:
            raise AnatomicaError(f"there are no named quantities of {anatomy} anatomy; ask with constraints")
        names = {e.key for e in known.values()}
        raise AnatomicaError(
            f"unknown quantity {key!r} of {anatomy} anatomy{nearest(key, names)}; "
            f"see: anatomica quantities --anatomy {anatomy}"
        )
    return entry


def families(about: Anatomy) -> tuple[Entry, ...]:
    """Quantities whose keys take vertebrae or tissues in brackets, written with letters for them.

    >>> from anatomica.anatomy.catalogue import ANATOMIES
    >>> [e.key for e in families(ANATOMIES["spinal"])][:3]
    ['cobb_deg[A,B]', 'cobb_coronal_deg[A,B]', 'touch[A,B].area_mm2']
    """
    found = [_angle(coronal, "A", "B") for coronal in (False, True)] if about.name == "spinal" else []
    for (kind, unit), (written, meaning) in zip(UNITS.items(), templates().items(), strict=True):
        found.append(_relation(about, kind, written, meaning, unit, ()))
    return tuple(found)


def _relation(
    about: Anatomy, kind: str, written: str, meaning: str, unit: str, parts: tuple[str, ...]
) -> Entry:
    count = kind == "pieces"
    # Of the cube's side, or of the cube: less than a voxel's face, or its volume, at 64^3.
    most = about.edge_mm**2 * LEAST if unit == "mm2" else about.edge_mm**3 / 1000 * LEAST / 64
    return Entry(written, about.name, unit, meaning, "ours", 0.0 if count else most, unit, count, parts)


def _cobb(coronal: bool, upper: str, lower: str) -> Entry:
    for name in (upper, lower):
        if name not in VERTEBRAE[2:]:
            raise AnatomicaError(f"cobb_deg[A,B] takes two vertebrae from C3 to L5, not {name!r}")
    if VERTEBRAE.index(upper) >= VERTEBRAE.index(lower):
        raise AnatomicaError(f"cobb_deg[A,B] takes the upper vertebra first: cobb_deg[{lower},{upper}]")
    return _angle(coronal, upper, lower)


def _angle(coronal: bool, upper: str, lower: str) -> Entry:
    plane = "coronal" if coronal else "sagittal"
    sign = "without sign" if coronal else "positive: bent forward"
    key = f"cobb{'_coronal' if coronal else ''}_deg[{upper},{lower}]"
    what = f"{plane} angle of {upper}'s upper with {lower}'s lower end plate, {sign}"
    return Entry(key, "spinal", "deg", what, COBB, 3.0, "deg", parts=(upper, lower, plane))
