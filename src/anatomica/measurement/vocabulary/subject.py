"""The subject: a label map in its cube, with landmarks that are found once and only when asked for."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import wraps
from typing import Any, Concatenate, ParamSpec, TypeVar

import numpy as np
import torch
from jaxtyping import Bool, Float
from scipy import ndimage
from torch import Tensor

from anatomica.anatomy.catalogue import Anatomy
from anatomica.anatomy.label_map import LabelMap
from anatomica.measurement.parse import slice_volume
from anatomica.measurement.vocabulary.plan import Missing, Piece, Plan

Array = np.ndarray
P = ParamSpec("P")
T = TypeVar("T")


class Subject:
    """A label map that is a cube. Lengths are mm from its corner: voxel i's centre is (i + 1/2) * voxel.

    `soft` gives partial volumes of tissues where the label map was made from a finer one; `scan_mm` the
    corners of what was scanned, if that is less than the cube. `coarse` is how many voxels lie between sample
    points of volumes (1 for measuring, more while sampling).
    """

    def __init__(
        self,
        cube: LabelMap,
        about: Anatomy,
        soft: Callable[[Sequence[str]], Tensor] | None = None,
        scan_mm: tuple[Array, Array] | None = None,
        coarse: int = 1,
    ) -> None:
        self.cube, self.about, self.coarse = cube, about, coarse
        self.n = cube.shape[0]
        self.voxel_mm = float(cube.spacing_mm[0])
        self.edge_mm = self.voxel_mm * self.n
        low, high = (np.zeros(3), np.full(3, self.edge_mm)) if scan_mm is None else scan_mm
        self.low_mm, self.high_mm = np.maximum(low, 0.0), np.minimum(high, self.edge_mm)
        self._soft = soft
        self._found: dict[Any, Any] = {}

    def there(self, tissue: str) -> bool:
        return bool(self.mask(tissue).any())

    def mask(self, *names: str) -> Bool[Array, "n n n"]:
        """Where any of the tissues is."""
        key = ("mask", names)
        if key not in self._found:
            ids = self.cube.table.ids_of(names)
            found = self.cube.array == ids[0]
            for id in ids[1:]:
                found |= self.cube.array == id
            self._found[key] = found
        return self._found[key]

    def need(self, *names: str) -> Bool[Array, "n n n"]:
        """The mask of tissues that a quantity cannot do without."""
        for name in names:
            if not self.there(name):
                raise Missing(f"no {self.cube.table[name].full_name} in the label map")
        return self.mask(*names)

    def box(self, *names: str) -> tuple[slice, slice, slice]:
        """The bounding box of some tissues that occur."""
        key = ("box", names)
        if key not in self._found:
            self._found[key] = ndimage.find_objects(self.mask(*names).view(np.uint8))[0]
        return self._found[key]

    def cut(self, *names: str) -> bool:
        """Whether tissues that occur reach the border of the scan, so that a part of them may be missing."""
        box = self.box(*names)
        low = np.array([x.start for x in box]) * self.voxel_mm
        high = np.array([x.stop for x in box]) * self.voxel_mm
        near = 0.75 * self.voxel_mm
        return bool((low < self.low_mm + near).any() or (high > self.high_mm - near).any())

    def inside(self, points_mm: Float[Array, "*p 3"]) -> bool:
        """Whether points lie within the scan, a voxel from its border."""
        return bool(
            (points_mm > self.low_mm + self.voxel_mm).all()
            and (points_mm < self.high_mm - self.voxel_mm).all()
        )

    def whole(self, *names: str) -> Bool[Array, "n n n"]:
        """The mask of tissues that do not reach the scan's border, so that none of them is cut off."""
        mask = self.need(*names)
        if self.cut(*names):
            raise Missing(f"{' + '.join(names)} is cut off by the border of the scan")
        return mask

    def S(self, names: Sequence[str]) -> Float[Tensor, "n n n"]:
        """How far the tissues fill each voxel."""
        key = ("S", tuple(names))
        if key not in self._found:
            hard = torch.from_numpy(self.mask(*names).astype(np.float32))
            self._found[key] = hard if self._soft is None else self._soft(names)
        return self._found[key]

    def sample(self, names: Sequence[str], points_mm: Float[Array, "*p 3"]) -> Float[Array, "*p"]:
        """The tissues at points of the cube, trilinear; zero outside."""
        at = (points_mm / self.voxel_mm - 0.5).reshape(-1, 3).T
        found = ndimage.map_coordinates(self.S(names).numpy(), at, order=1, mode="constant", cval=0.0)
        return found.reshape(points_mm.shape[:-1])

    def points(self, mask: Bool[Array, "n n n"]) -> Float[Array, "p 3"]:
        """Centres of a mask's voxels in the cube's mm."""
        return (np.argwhere(mask) + 0.5) * self.voxel_mm

    def voxels(self, *names: str) -> Float[Array, "p 3"]:
        """Centres of the voxels of tissues, in the cube's mm; empty where they do not occur."""
        if not self.mask(*names).any():
            return np.zeros((0, 3))
        box = self.box(*names)
        first = np.array([x.start for x in box])
        return (np.argwhere(self.mask(*names)[box]) + first + 0.5) * self.voxel_mm

    def to_ras(self, points_mm: Float[Array, "*p 3"]) -> Float[Array, "*p 3"]:
        """The cube's mm -> RAS mm."""
        return points_mm - 0.5 * self.voxel_mm + self.cube.affine[:3, 3]

    def parse(self, piece: Piece) -> Float[Tensor, " p"]:
        """A piece's samples on this label map, in double precision."""
        points = torch.from_numpy(piece.points_mm / self.edge_mm)[None]
        S = self.S(piece.tissues)
        return slice_volume(S[None], points.to(S))[0].double()

    def hard(self, plan: Plan) -> float:
        """The hard form of a quantity: its plan's value on this label map."""
        return float(plan.value([self.parse(piece) for piece in plan.pieces]))


def landmark(
    find: Callable[Concatenate[Subject, P], T],
) -> Callable[Concatenate[Subject, P], T]:
    """A function of a subject that is computed once for each subject and argument, failures included."""

    @wraps(find)
    def once(s: Subject, *args: P.args, **kwargs: P.kwargs) -> T:
        key = (find.__module__, find.__name__, args)
        if key not in s._found:
            try:
                s._found[key] = find(s, *args, **kwargs)
            except Missing as why:
                s._found[key] = why
        found = s._found[key]
        if isinstance(found, Missing):
            raise found
        return found

    return once
