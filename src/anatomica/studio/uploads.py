"""A person's own file: read by the same reader as everywhere, brought into the anatomy's cube."""

from __future__ import annotations

import re
import tempfile
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import numpy as np

from anatomica.anatomy.catalogue import Anatomy
from anatomica.anatomy.frame import Frame
from anatomica.anatomy.label_map import LabelMap, to_cube
from anatomica.anatomy.nifti import load, read_grid
from anatomica.anatomy.vocabularies import UserMapping
from anatomica.errors import AnatomicaError, naming
from anatomica.files import write_atomic
from anatomica.studio.bounds import MOST_EDGE

GZIP = b"\x1f\x8b"


class UnknownLabelsError(AnatomicaError):
    """The file is fine, but which tissues its labels are must be said. `labels` are its own."""

    def __init__(self, sentence: str, labels: list[dict[str, Any]]) -> None:
        super().__init__(sentence)
        self.labels = labels


async def collected(stream: AsyncIterator[bytes]) -> bytes:
    """The body of an upload; the guard has bounded it."""
    parts = [part async for part in stream]
    return b"".join(parts)


def read_upload(data: bytes, about: Anatomy, mapping: UserMapping | str | None) -> LabelMap:
    """A NIfTI file's bytes as a patient of the anatomy, in the frame that its model works in."""
    with tempfile.TemporaryDirectory(prefix="anatomica-studio-") as folder:
        # Its name on the other side plays no part: content tells the kind.
        path = Path(folder) / ("upload.nii.gz" if data.startswith(GZIP) else "upload.nii")
        write_atomic(path, data)
        try:
            found = load(path, about, mapping)
        except AnatomicaError as error:
            sentence = re.sub(rf"^{re.escape(str(path))}: ", "", str(error))
            if mapping is None and "cannot tell which tissues" in sentence:
                raise UnknownLabelsError(sentence.split("; name their")[0], _labels(path)) from None
            raise AnatomicaError(f"the file: {sentence}".replace(str(path), "the file")) from None
    with naming("the file"):
        cube = to_cube(found, about, MOST_EDGE)
    if not cube.present():
        raise AnatomicaError(f"the file has no tissue of the {about.name} anatomy")
    return LabelMap(cube.array, Frame.model(about, MOST_EDGE).affine, about.table)


def _labels(path: Path) -> list[dict[str, Any]]:
    grid = read_grid(path)
    ids, counts = np.unique(grid.array, return_counts=True)
    return [
        {"id": int(i), "name": grid.names.get(int(i)), "voxels": int(n)}
        for i, n in zip(ids, counts, strict=True)
        if i != 0
    ][:256]
