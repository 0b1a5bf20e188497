"""Relations of tissues as quantities of any anatomy: contact, enclosure, pieces, what lies outside a box.

`LV touches LA` is short for `touch[LV,LA].area_mm2 >= 1`, and so on for the sentences of `SENTENCES`; as
quantities they can be measured, bounded and compared like all others.
"""

from __future__ import annotations

import re

from anatomica.anatomy.catalogue import Anatomy
from anatomica.anatomy.labels import LabelTable
from anatomica.errors import AnatomicaError

RELATION = re.compile(r"^(touch|uncovered|pieces|outside)\[([^\]]*)\](?:\.(\w+))?$", re.IGNORECASE)
UNITS = {"touch": "mm2", "uncovered": "mm2", "pieces": "", "outside": "mL"}
ENDINGS = {"touch": ".area_mm2", "uncovered": ".area_mm2", "pieces": "", "outside": ".volume_ml"}
PLACEHOLDERS = {
    "touch": ("A", "B"),
    "uncovered": ("A", "B"),
    "pieces": ("A",),
    "outside": ("A", "x0", "x1", "y0", "y1", "z0", "z1"),
}
"""The arguments of each relation."""
MEANINGS = {
    "touch": "area of the voxel faces that {0} and {1} share",
    "uncovered": "area of the faces of {1} beyond which is neither {0} nor {1}; 0 if {0} encloses it",
    "pieces": "pieces of {0}: voxels that hang together by faces",
    "outside": "volume of {0} outside the box from {1}, {3}, {5} to {2}, {4}, {6} mm (RAS; the cube's centre "
    "is 0)",
}
LEAST = 1e-4
"""Tolerance of areas and volumes, as a share of a side of the cube or of the cube."""
_NUMBER = r"[-+]?\d+(?:\.\d+)?"
_RANGE = rf"\s*({_NUMBER})\s*\.\.\s*({_NUMBER})\s*"
SENTENCES = (
    (re.compile(r"^(.+?) does not touch (.+)$"), "touch[{0},{1}].area_mm2 = 0"),
    (re.compile(r"^(.+?) touches (.+?) over (.+)$"), "touch[{0},{1}].area_mm2 >= {2}"),
    (re.compile(r"^(.+?) touches (.+)$"), "touch[{0},{1}].area_mm2 >= 1"),
    (re.compile(r"^(.+?) encloses (.+)$"), "uncovered[{0},{1}].area_mm2 = 0"),
    (re.compile(r"^(.+?) in one piece$"), "pieces[{0}] = 1"),
    (re.compile(r"^(.+?) in (\d+) pieces$"), "pieces[{0}] = {1}"),
    (
        re.compile(rf"^(.+?) inside \({_RANGE},{_RANGE},{_RANGE}\)$"),
        "outside[{0},{1},{2},{3},{4},{5},{6}].volume_ml = 0",
    ),
)
"""What can be said of tissues in words, and the ask that it is short for."""


def in_words(text: str) -> str:
    """An ask in which a sentence about tissues is replaced by the ask that it is short for.

    >>> in_words("LV does not touch RV")
    'touch[LV,RV].area_mm2 = 0'
    """
    for pattern, meaning in SENTENCES:
        if found := pattern.match(text.strip()):
            return meaning.format(*(x.strip() for x in found.groups()))
    return text


def relation(key: str, about: Anatomy) -> tuple[str, str, tuple[str, ...], str] | None:
    """Kind, key with short names, arguments and meaning of a relation; None if the key is none."""
    found = RELATION.match(key.strip())
    if found is None:
        return None
    kind, given = found[1].lower(), [x.strip() for x in found[2].split(",")]
    if (found[3] or "") != ENDINGS[kind].lstrip(".") or len(given) != len(PLACEHOLDERS[kind]):
        raise AnatomicaError(f"{key!r} is not a relation of tissues; write {_written(kind)}")
    tissues = 2 if kind in ("touch", "uncovered") else 1
    names = [_tissue(x, about.table) for x in given[:tissues]]
    if kind == "touch":
        names = sorted(names, key=about.table.names.index)
    if len(set(names)) < tissues:
        raise AnatomicaError(f"{key!r} names one tissue twice")
    try:
        numbers = [float(x) for x in given[tissues:]]
    except ValueError:
        raise AnatomicaError(f"{key!r}: the box takes six numbers in mm") from None
    if any(a >= b for a, b in zip(numbers[::2], numbers[1::2], strict=True)):
        raise AnatomicaError(f"{key!r}: the box ends before it begins")
    parts = (*names, *(f"{x:g}" for x in numbers))
    return kind, f"{kind}[{','.join(parts)}]{ENDINGS[kind]}", parts, MEANINGS[kind].format(*parts)


def _tissue(name: str, table: LabelTable) -> str:
    return table[name].name


def _written(kind: str) -> str:
    return f"{kind}[{','.join(PLACEHOLDERS[kind])}]{ENDINGS[kind]}"


def templates() -> dict[str, str]:
    """The relations as they are written, with letters for tissues and names for numbers, and their meaning.

    >>> templates()["pieces[A]"]
    'pieces of A: voxels that hang together by faces'
    """
    return {_written(kind): MEANINGS[kind].format(*PLACEHOLDERS[kind]) for kind in UNITS}
