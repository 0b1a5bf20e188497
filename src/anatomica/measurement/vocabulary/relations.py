"""Relations of tissues on a label map: contact, enclosure, pieces, what lies outside a box."""

from __future__ import annotations

from collections.abc import Sequence

import cc3d
import numpy as np
from jaxtyping import Float
from torch import Tensor

from anatomica.measurement.vocabulary.plan import Piece, Plan, number
from anatomica.measurement.vocabulary.shapes import ROOM_MM, volume_piece
from anatomica.measurement.vocabulary.subject import Subject

Array = np.ndarray


def _grid(s: Subject, low: Array, high: Array) -> tuple[Float[Array, "p 3"], tuple[int, ...], float]:
    """Voxel centres of a box of voxels with room around it (every `coarse`-th), and a cell's edge in mm."""
    room = max(round(ROOM_MM * s.n), 1)
    low, high = np.maximum(low - room, 0), np.minimum(high + room, s.n)
    axes = [
        (np.arange(a, b, s.coarse) + s.coarse / 2) * s.voxel_mm
        for a, b in zip(low.tolist(), high.tolist(), strict=True)
    ]
    points = np.stack(np.meshgrid(*axes, indexing="ij"), -1)
    return points.reshape(-1, 3), points.shape[:3], s.coarse * s.voxel_mm


def _steps(x: Tensor) -> list[tuple[Tensor, Tensor]]:
    """Neighbours along each axis: (this side, that side)."""
    return [(x.narrow(d, 0, x.shape[d] - 1), x.narrow(d, 1, x.shape[d] - 1)) for d in range(3)]


def touch(s: Subject, first: str, second: str) -> Plan:
    """Area of the faces between two tissues: the product of their memberships on either side of a face."""
    if not s.there(first) or not s.there(second):
        return number(0.0)
    boxes = [s.box(x) for x in (first, second)]
    low = np.max([[x.start for x in box] for box in boxes], axis=0) - 1
    high = np.min([[x.stop for x in box] for box in boxes], axis=0) + 1
    points, shape, cell = _grid(s, np.minimum(low, high), np.maximum(low, high))

    def value(S: Sequence[Tensor]) -> Tensor:
        pairs = zip(_steps(S[0].view(shape)), _steps(S[1].view(shape)), strict=True)
        return sum((a0 * b1 + a1 * b0).sum() for (a0, a1), (b0, b1) in pairs) * cell**2  # type: ignore[return-value]

    return Plan((Piece((first,), points), Piece((second,), points)), value)


def uncovered(s: Subject, outer: str, inner: str) -> Plan:
    """Area of the inner tissue's faces beyond which is neither of the two."""
    s.need(inner)
    box = s.box(inner)
    points, shape, cell = _grid(s, np.array([x.start for x in box]), np.array([x.stop for x in box]))

    def value(S: Sequence[Tensor]) -> Tensor:
        pairs = zip(_steps(S[0].view(shape)), _steps(1 - S[1].view(shape)), strict=True)
        return sum((a0 * b1 + a1 * b0).sum() for (a0, a1), (b0, b1) in pairs) * cell**2  # type: ignore[return-value]

    return Plan((Piece((inner,), points), Piece((outer, inner), points)), value)


def pieces(s: Subject, tissue: str) -> Plan:
    """A count: voxels that hang together by faces."""
    return number(float(cc3d.connected_components(s.mask(tissue), connectivity=6, return_N=True)[1]))


def outside(s: Subject, tissue: str, *limits: str) -> Plan:
    """Volume of a tissue outside a box, in mL."""
    if not s.there(tissue):
        return number(0.0)
    piece, cell = volume_piece(s, tissue)
    low, high = np.array(limits, float).reshape(3, 2).T
    ras = s.to_ras(piece.points_mm)
    beyond = ((ras < low) | (ras > high)).any(-1)
    if not beyond.any():
        return number(0.0)
    own = Piece(piece.tissues, piece.points_mm[beyond])
    return Plan((own,), lambda S: S[0].sum() * (cell / 1000))


PLANS = {"touch": touch, "uncovered": uncovered, "pieces": pieces, "outside": outside}
"""By the name before the bracket; the arguments are the key's."""
