"""LabelMap: an integer array that always travels with its affine and its label table."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, Literal

import nibabel as nib
import numpy as np
from scipy import ndimage

from anatomica.anatomy.bounds import MOST_GROWN_EDGE, MOST_MM
from anatomica.anatomy.catalogue import Anatomy
from anatomica.anatomy.labels import LabelTable
from anatomica.errors import AnatomicaError

Interpolation = Literal["linear", "nearest"]


@dataclass(frozen=True, eq=False)
class LabelMap:
    """A multi-class segmentation: array[i, j, k] is a label id, affine maps (i, j, k, 1) to RAS mm."""

    array: np.ndarray
    affine: np.ndarray
    table: LabelTable

    def __post_init__(self) -> None:
        if self.array.ndim != 3:
            raise AnatomicaError(f"a label map has 3 axes; this array has shape {self.array.shape}")
        if not np.issubdtype(self.array.dtype, np.integer):
            raise AnatomicaError(f"a label map holds integers; this array is {self.array.dtype}")
        check_affine(self.affine)
        unknown = sorted(set(label_ids(self.array)) - set(self.table.ids))
        if unknown:
            raise AnatomicaError(
                f"label ids {unknown[:12]} are not in the label table (its ids: {_short(self.table.ids)}); "
                "give a mapping for them"
            )

    @property
    def shape(self) -> tuple[int, int, int]:
        nx, ny, nz = self.array.shape
        return nx, ny, nz

    @property
    def spacing_mm(self) -> np.ndarray:
        """Voxel edge lengths in mm along the three array axes."""
        return np.linalg.norm(self.affine[:3, :3], axis=0)

    @property
    def voxel_ml(self) -> float:
        return float(abs(np.linalg.det(self.affine[:3, :3]))) / 1000.0

    def mask(self, *names: str) -> np.ndarray:
        """Where any of the named tissues is."""
        return np.isin(self.array, self.table.ids_of(names))

    def volume_ml(self, *names: str) -> float:
        """Volume of the union of the named tissues, by counting voxels."""
        return float(self.mask(*names).sum()) * self.voxel_ml

    def present(self) -> tuple[str, ...]:
        """Short names of the tissues that occur."""
        found = set(label_ids(self.array))
        return tuple(x.name for x in self.table.labels[1:] if x.id in found)


def label_ids(array: np.ndarray) -> list[int]:
    """Ids that occur, ascending. For small unsigned types a look-up in pieces: no sort of a whole scan."""
    if array.dtype not in (np.uint8, np.uint16):
        return np.unique(array).tolist()
    seen = np.zeros(2 ** (8 * array.dtype.itemsize), dtype=bool)
    flat = array.ravel(order="K")  # no copy, whichever way the axes lie in memory
    for start in range(0, flat.size, 2**16):
        piece = flat[start : start + 2**16]
        if piece.any():  # most of a scan is background, and saying so is cheap
            seen[piece] = True
        else:
            seen[0] = True
    return np.flatnonzero(seen).tolist()


def check_affine(affine: np.ndarray) -> None:
    """Refuse an affine that is not a finite, invertible, unsheared 4x4 map."""
    if affine.shape != (4, 4) or not np.isfinite(affine).all():
        raise AnatomicaError("the affine must be a 4x4 matrix of finite numbers")
    if np.abs(affine).max() > MOST_MM:
        raise AnatomicaError(f"the affine has numbers beyond {MOST_MM:g} mm")
    columns = affine[:3, :3]
    lengths = np.linalg.norm(columns, axis=0)
    if (lengths < 1e-6).any():
        raise AnatomicaError(f"the affine has a voxel edge of zero length: {lengths.tolist()} mm")
    cosines = (columns / lengths).T @ (columns / lengths) - np.eye(3)
    if np.abs(cosines).max() > 1e-3:
        raise AnatomicaError(
            "the affine is sheared (its axes are not at right angles); resample the file first"
        )


def cube_affine(edge_mm: float, n: int, centre_mm: np.ndarray | None = None) -> np.ndarray:
    """RAS affine of an n^3 cube of the given edge; the centre is (0, 0, 0) mm unless given."""
    voxel = edge_mm / n
    affine = np.diag([voxel, voxel, voxel, 1.0])
    affine[:3, 3] = (np.zeros(3) if centre_mm is None else np.asarray(centre_mm)) - (n - 1) / 2 * voxel
    return affine


def to_ras(label_map: LabelMap) -> LabelMap:
    """Permute and flip the axes so that they point right, anterior, superior (no resampling)."""
    array, affine = ras_grid(label_map.array, label_map.affine)
    return replace(label_map, array=array, affine=affine)


def ras_grid(array: np.ndarray, affine: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """An array and its affine with the axes in RAS order and direction."""
    now = nib.orientations.io_orientation(affine)
    turned = nib.orientations.apply_orientation(array, now)
    step = nib.orientations.inv_ornt_aff(now, array.shape)
    # A copy in the order of memory: many times faster than one in C order, and without negative strides.
    return turned.copy(order="K"), affine @ step


def resample(
    label_map: LabelMap, shape: tuple[int, int, int], affine: np.ndarray, method: Interpolation = "linear"
) -> LabelMap:
    """The same anatomy on another grid. Outside the source is background.

    `linear` interpolates each label's indicator and takes the largest (one-hot linear + argmax); `nearest`
    picks the closest voxel. Argmax by itself rounds convex corners off and loses one to four percent of a
    vertebra or an aorta, so each label's weight carries a small handicap that keeps its volume.
    """
    to_source = np.linalg.inv(label_map.affine) @ affine
    linear, offset = to_source[:3, :3], to_source[:3, 3] + _TIE_BREAK
    seen = _footprint(linear, offset, shape, label_map.shape)
    array = np.ascontiguousarray(label_map.array[seen])
    offset = offset - [s.start for s in seen]
    if method == "nearest":
        # The rim of zeros gives the border voxels their outer halves, which scipy counts as outside.
        array = _sample(np.pad(array, 1), linear, offset + 1, shape, order=0)
        return replace(label_map, array=array, affine=affine)
    winner = np.zeros(shape, dtype=array.dtype)
    # The background's weight is what the foreground leaves; a voxel takes the label of the largest weight.
    best = 1.0 - _sample(np.pad(array > 0, 1).astype(np.float32), linear, offset + 1, shape, order=1)
    for id, source in enumerate(ndimage.find_objects(array), start=1):
        if source is None:
            continue
        box = _box(source, linear, offset, shape)
        if box is None:
            continue
        start = np.array([s.start for s in box], dtype=float)
        begin = np.array([s.start for s in source], dtype=float)
        indicator = np.pad(array[source] == id, 1).astype(np.float32)
        extent = tuple(s.stop - s.start for s in box)
        weight = _sample(indicator, linear, offset + linear @ start - begin + 1, extent, order=1)
        weight -= _handicap(weight)
        wins = weight > best[box]
        best[box][wins] = weight[wins]
        winner[box][wins] = id
    return replace(label_map, array=winner, affine=affine)


def partial_volumes(label_map: LabelMap, names: tuple[str, ...], onto: LabelMap) -> np.ndarray:
    """Share of each voxel of another grid that the named tissues fill: their indicator, interpolated.

    Unlike the argmax of `resample` it keeps the volume of a structure that the scan's edge cuts flat, whose
    face could only move by whole voxels.
    """
    to_source = np.linalg.inv(label_map.affine) @ onto.affine
    rimmed = np.pad(label_map.mask(*names), 1).astype(np.float32)
    return _sample(rimmed, to_source[:3, :3], to_source[:3, 3] + 1, onto.shape, order=1)


_TIE_BREAK = np.array([1.0e-3, 0.7e-3, 0.4e-3])
"""Source voxels by which sampling points are moved. At simple ratios (two to one) many weights tie, and a
rule that favours one label would shrink the others; a tiny common shift decides ties as a translation would.
"""


def _handicap(weight: np.ndarray) -> float:
    """What to take off a label's weight so that it wins as many voxels as its weights add up to.

    A label whose only rival is the background wins where its weight exceeds (1 + handicap) / 2. Linear
    weights add up to the volume seen, also where the grid cuts the structure, so that sum is the count to
    reach.
    """
    values = weight[weight > 0]
    count = round(float(values.sum(dtype=np.float64)))
    if not 0 < count < values.size:
        return 0.0
    threshold = float(np.partition(values, values.size - count)[values.size - count])
    # At simple ratios many weights are equal: take that whole step or leave it, whichever comes closer.
    above, below = (int((values > threshold + d).sum()) for d in (1e-4, -1e-4))
    threshold += 1e-4 if count - above <= below - count else -1e-4
    return 2 * min(max(threshold, 0.4), 0.6) - 1


def _sample(array: np.ndarray, linear: np.ndarray, offset: np.ndarray, shape: tuple[int, ...], order: int):
    """`array` at linear @ index + offset; 0 outside."""
    moved: Any = offset  # scipy's stubs allow only a float
    return ndimage.affine_transform(array, linear, moved, output_shape=shape, order=order, cval=0)


def _footprint(
    linear: np.ndarray, offset: np.ndarray, shape: tuple[int, int, int], source: tuple[int, int, int]
) -> tuple[slice, ...]:
    """Slices of the source that the target grid can see (never empty)."""
    corners = _corners(np.zeros(3), np.array(shape) - 1.0) @ linear.T + offset
    low = np.clip(np.floor(corners.min(0)).astype(int) - 1, 0, np.array(source) - 1)
    high = np.clip(np.ceil(corners.max(0)).astype(int) + 2, low + 1, source)
    return tuple(slice(a, b) for a, b in zip(low.tolist(), high.tolist(), strict=True))


def _box(
    source: tuple[slice, ...], linear: np.ndarray, offset: np.ndarray, shape: tuple[int, int, int]
) -> tuple[slice, ...] | None:
    """Slices of the target grid that can see this box of the source, None if there are none."""
    corners = _corners(np.array([s.start - 1.0 for s in source]), np.array([float(s.stop) for s in source]))
    seen = np.linalg.solve(linear, (corners - offset).T).T
    low = np.maximum(np.floor(seen.min(0)).astype(int), 0)
    high = np.minimum(np.ceil(seen.max(0)).astype(int) + 1, shape)
    if (high <= low).any():
        return None
    return tuple(slice(a, b) for a, b in zip(low.tolist(), high.tolist(), strict=True))


def _corners(low: np.ndarray, high: np.ndarray) -> np.ndarray:
    """The eight corners of a box."""
    return np.stack(np.meshgrid(*zip(low, high, strict=True), indexing="ij"), -1).reshape(-1, 3)


def regrid(label_map: LabelMap, n: int, method: Interpolation = "linear") -> LabelMap:
    """The same box of space on n x n x n voxels."""
    scale = np.array(label_map.shape) / n
    step = np.diag(np.append(scale, 1.0))
    step[:3, 3] = (scale - 1) / 2  # outer faces stay, so the first voxel's centre moves
    return resample(label_map, (n, n, n), label_map.affine @ step, method)


def centre_mm(label_map: LabelMap, names: tuple[str, ...] = ()) -> np.ndarray:
    """Middle of the bounding box of the named tissues (all tissues if none is named), RAS mm."""
    mask = label_map.mask(*names) if names else label_map.array > 0
    if not mask.any():
        what = " and ".join(names) if names else "any tissue"
        raise AnatomicaError(f"cannot centre the cube: {what} does not occur in the label map")
    low, high = bounding_box(mask)
    return (label_map.affine @ np.append((low + high - 1) / 2, 1.0))[:3]


def bounding_box(mask: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """First and one-past-last index of the mask along each axis."""
    lines = [np.flatnonzero(mask.any(axis=others)) for others in ((1, 2), (0, 2), (0, 1))]
    return np.array([x[0] for x in lines]), np.array([x[-1] + 1 for x in lines])


def to_cube(
    label_map: LabelMap,
    anatomy: Anatomy,
    n: int = 128,
    method: Interpolation = "linear",
    grow: bool = False,
) -> LabelMap:
    """The label map in its anatomy's frame: an n^3 isotropic RAS cube around the anatomy's centre.

    A label map that already fills such a cube (a phantom, a generated sample, a cached case) keeps its cube:
    it is returned as it is, or brought to n^3 in place. With `grow`, a cube that would cut tissue off is
    enlarged, voxel size kept, until it holds all of it.
    """
    voxel = anatomy.edge_mm / n
    if _is_cube(label_map, anatomy):
        if label_map.shape == (n, n, n):
            return label_map
        return regrid(label_map, n, method)
    names = tuple(t for t in anatomy.centre_on if t in label_map.present())
    centre = centre_mm(label_map, names)
    if grow:
        reach, needed = _reach(label_map, centre, voxel)
        if needed > max(n, MOST_GROWN_EDGE):
            raise AnatomicaError(
                f"the tissue reaches {reach:.4g} mm from the centre of the {anatomy.name} cube of "
                f"{anatomy.edge_mm:g} mm and needs a cube of {needed}^3 voxels, more than "
                f"{MOST_GROWN_EDGE}^3; is it {anatomy.name} anatomy? If so, take a lower resolution than {n}"
            )
        n = max(n, needed)
    return resample(label_map, (n, n, n), cube_affine(voxel * n, n, centre), method)


def _reach(label_map: LabelMap, centre: np.ndarray, voxel: float) -> tuple[float, int]:
    """How far tissue reaches from a centre in mm, and the voxels along a cube around it that holds all."""
    low, high = bounding_box(label_map.array > 0)
    # Half a voxel beyond the outer faces, where interpolation has faded to nothing.
    faces = _corners(low - 1.0, high * 1.0) @ label_map.affine[:3, :3].T + label_map.affine[:3, 3]
    reach = float(np.abs(faces - centre).max())
    return reach, 2 * int(np.ceil(reach / voxel - 1e-6))


def affordable(label_map: LabelMap, anatomy: Anatomy, n: int, least: int) -> int:
    """The largest of n, 3/4 n and n/2 voxels per edge of the anatomy's cube, not below `least`, with which
    the cube that holds all tissue is not too large; n if none is."""
    if _is_cube(label_map, anatomy):
        return n
    names = tuple(t for t in anatomy.centre_on if t in label_map.present())
    centre = centre_mm(label_map, names)
    for tried in (n, n * 3 // 4, n // 2):
        if tried >= least and _reach(label_map, centre, anatomy.edge_mm / tried)[1] <= MOST_GROWN_EDGE:
            return tried
    return n


def _is_cube(label_map: LabelMap, anatomy: Anatomy) -> bool:
    """Whether the label map's grid is an n^3 RAS cube with the anatomy's edge, wherever it lies."""
    n = label_map.shape[0]
    wanted = np.eye(3) * anatomy.edge_mm / n
    return label_map.shape == (n, n, n) and np.allclose(
        label_map.affine[:3, :3], wanted, rtol=1e-4, atol=1e-4 * anatomy.edge_mm / n
    )


def _short(values: tuple[int, ...]) -> str:
    return ", ".join(map(str, values)) if len(values) <= 30 else f"{values[0]} to {values[-1]}"
