"""Boxes to and from 3D Slicer: Markups ROI files (`.mrk.json`), which Slicer loads by drag and drop.

Slicer writes LPS, the spec's boxes are RAS: x and y change their sign, which turns no box over.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from pydantic import BaseModel, ConfigDict, Field, ValidationError
from scipy.spatial.transform import Rotation

from anatomica.errors import AnatomicaError

SCHEMA = (
    "https://raw.githubusercontent.com/slicer/slicer/master/Modules/Loadable/Markups/Resources/Schema/"
    "markups-schema-v1.0.3.json#"
)
FLIP = np.diag([-1.0, -1.0, 1.0])
Number = float
Triple = tuple[Number, Number, Number]


class Box(BaseModel):
    """A box as a spec has it, with a name."""

    model_config = ConfigDict(extra="forbid", allow_inf_nan=False)

    name: str = Field(max_length=200)
    centre_mm: Triple
    size_mm: Triple
    rotation_deg: Triple = (0.0, 0.0, 0.0)


class _Roi(BaseModel):
    model_config = ConfigDict(allow_inf_nan=False)

    type: str
    coordinateSystem: str = "LPS"
    roiType: str = "Box"
    label: str = ""
    name: str = ""
    center: Triple
    size: Triple
    orientation: tuple[float, ...] = Field(default=(-1, 0, 0, 0, -1, 0, 0, 0, 1), min_length=9, max_length=9)


def write_markups(boxes: list[Box]) -> dict[str, Any]:
    """A Markups file with one ROI for each box."""
    return {"@schema": SCHEMA, "markups": [_written(box) for box in boxes]}


def _written(box: Box) -> dict[str, Any]:
    R = Rotation.from_euler("xyz", box.rotation_deg, degrees=True).as_matrix()
    return {
        "type": "ROI",
        "coordinateSystem": "LPS",
        "coordinateUnits": "mm",
        "locked": False,
        "fixedNumberOfControlPoints": False,
        "labelFormat": "%N-%d",
        "name": box.name,
        "roiType": "Box",
        "center": (FLIP @ np.array(box.centre_mm)).tolist(),
        "orientation": (FLIP @ R).reshape(-1).tolist(),
        "size": list(box.size_mm),
        "insideOut": False,
        "controlPoints": [
            {
                "id": "1",
                "label": box.name,
                "description": "",
                "associatedNodeID": "",
                "position": (FLIP @ np.array(box.centre_mm)).tolist(),
                "orientation": (FLIP @ R).reshape(-1).tolist(),
                "selected": True,
                "locked": False,
                "visibility": True,
                "positionStatus": "defined",
            }
        ],
        "measurements": [],
    }


def read_markups(content: dict[str, Any], most: int = 64) -> list[Box]:
    """The box ROIs of a Markups file; what else is in it is passed over."""
    listed = content.get("markups")
    if not isinstance(listed, list):
        raise AnatomicaError("this is not a Markups file of 3D Slicer: it has no list `markups`")
    rois = [x for x in listed if isinstance(x, dict) and x.get("type") == "ROI"]
    if not rois:
        raise AnatomicaError("the Markups file has no ROI; in 3D Slicer, save a ROI node as .mrk.json")
    try:
        found = [_Roi.model_validate(x) for x in rois[:most]]
    except ValidationError as error:
        problem = error.errors()[0]
        where = ".".join(map(str, problem["loc"]))
        raise AnatomicaError(f"the Markups file's ROI cannot be read: {where}: {problem['msg']}") from None
    return [_read(roi, i) for i, roi in enumerate(found, 1)]


def _read(roi: _Roi, number: int) -> Box:
    flip = FLIP if roi.coordinateSystem.upper() in ("LPS", "1") else np.eye(3)
    axes = flip @ np.array(roi.orientation).reshape(3, 3)
    lengths = np.linalg.norm(axes, axis=0)
    if min(roi.size) <= 0 or lengths.min() < 1e-6:
        raise AnatomicaError(f"ROI {number} of the Markups file has no volume")
    axes = axes / lengths
    if np.linalg.det(axes) < 0:
        axes[:, 0] *= -1  # the same box
    return Box(
        name=(roi.name or roi.label or f"ROI {number}")[:200],
        centre_mm=_triple(flip @ np.array(roi.center)),
        size_mm=_triple(np.array(roi.size)),
        rotation_deg=_triple(Rotation.from_matrix(axes).as_euler("xyz", degrees=True)),
    )


def _triple(values: np.ndarray) -> Triple:
    x, y, z = (round(float(v), 4) + 0.0 for v in values)
    return x, y, z
