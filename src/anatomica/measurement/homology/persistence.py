"""Persistent homology of volumes: the Python face of the C++ kernel (cpp/, explained in docs/homology.md)."""

import os
from collections.abc import Sequence
from typing import Literal

import numpy as np
from numpy import ndarray

from anatomica import _kernel  # pyright: ignore[reportAttributeAccessIssue]
from anatomica.errors import AnatomicaError
from anatomica.measurement.homology.diagram import Diagram

Construction = Literal["V", "T"]


def persistence(
    volume: ndarray | Sequence[ndarray],
    dims: Sequence[int] = (0, 1, 2),
    construction: Construction = "V",
    min_persistence: float = 0.0,
    clamp: float | None = None,
    *,
    top: int | None = None,
    threads: int | None = None,
) -> Diagram | list[Diagram]:
    """Persistence pairs of the superlevel filtration, with the voxels where each class is born and dies.

    ``volume``: an array of 1, 2 or 3 dimensions gives one Diagram; a batch, as an array of 4 dimensions
    (batch first) or a sequence of arrays of any shapes, gives a list of them.  float32 and float64 are
    taken as they are, other real types are converted; values must be finite.

    ``dims``: only these are computed.  ``construction``: "V" makes voxels the vertices of the cubical complex
    (foreground 6-connected, background 26-connected), "T" its top cells (the other way round).  Ties between
    values are broken by index, lower index first.  Pairs with birth = death are never emitted, nor are pairs
    shorter than ``min_persistence``; a constant volume therefore has an empty diagram.

    ``clamp``: for probabilities; p < clamp counts as 0 and p > 1 - clamp as 1.  Each birth and death is
    off by at most ``clamp`` (bottleneck distance), and a nearly binary, noisy volume becomes many times
    cheaper.  A class that is born or dies on a plateau of 0 or 1 reports the plateau's extreme voxel in
    the original values.

    ``top``: keep only that many most persistent pairs of each dimension, longest first.  ``threads``: the
    batch is shared among that many threads, by default as many as there are cores available.

    >>> import numpy as np
    >>> d = persistence(np.array([0.0, 3.0, 1.0, 2.0]))
    >>> [(float(b), float(e)) for b, e in zip(d.birth, d.death)]
    [(2.0, 1.0), (3.0, 0.0)]
    """
    if isinstance(volume, ndarray) and 1 <= volume.ndim <= 3:
        return kernel_diagrams([volume], dims, construction, min_persistence, clamp, top, threads)[0]
    if isinstance(volume, ndarray) and volume.ndim != 4:
        raise AnatomicaError(
            f"persistence was given an array of shape {volume.shape}; expected 1, 2 or 3 dimensions, "
            "or 4 for a batch of volumes."
        )
    return kernel_diagrams(list(volume), dims, construction, min_persistence, clamp, top, threads)


def kernel_diagrams(
    volumes: list[ndarray],
    dims: Sequence[int],
    construction: str,
    min_persistence: float,
    clamp: float | None,
    top: int | None,
    threads: int | None,
) -> list[Diagram]:
    """One Diagram for each volume of 1 to 3 dimensions, after checking everything the user gave."""
    counts, *columns = run_kernel(volumes, dims, construction, min_persistence, clamp, top, threads)
    ends = np.cumsum(counts)
    return [
        Diagram(*(column[end - count : end] for column in columns))
        for count, end in zip(counts, ends, strict=True)
    ]


def run_kernel(
    volumes: list[ndarray],
    dims: Sequence[int],
    construction: str,
    min_persistence: float,
    clamp: float | None,
    top: int | None,
    threads: int | None,
) -> tuple[ndarray, ...]:
    """(pairs in each volume, and the columns of Diagram for all volumes end to end)."""
    if not set(dims) <= {0, 1, 2}:
        raise AnatomicaError(f"dims={tuple(dims)} was given; expected some of 0, 1 and 2.")
    if construction not in ("V", "T"):
        raise AnatomicaError(f'construction={construction!r} was given; expected "V" or "T".')
    if not min_persistence >= 0:
        raise AnatomicaError(f"min_persistence={min_persistence} was given; expected 0 or more.")
    if clamp is not None and not 0 <= clamp < 0.5:
        raise AnatomicaError(f"clamp={clamp} was given; expected None or a number from 0 to below 0.5.")
    if top is not None and top < 1:
        raise AnatomicaError(f"top={top} was given; expected None or at least 1.")
    if threads is not None and threads < 1:
        raise AnatomicaError(f"threads={threads} was given; expected None or at least 1.")
    prepared = [_prepare(volume) for volume in volumes]
    if len({volume.dtype for volume in prepared}) > 1:
        prepared = [volume.astype(np.float64) for volume in prepared]
    try:
        return _kernel.persistence(
            prepared,
            sum(1 << dim for dim in set(dims)),
            construction == "T",
            float(min_persistence),
            float(clamp or 0.0),
            top or 0,
            threads or _cores(),
        )
    except ValueError as error:
        raise AnatomicaError(_explain(volumes, clamp) or f"{str(error).capitalize()}.") from None


def _prepare(volume: ndarray) -> ndarray:
    """The array as the kernel wants it: three axes, C order, float32 or float64."""
    volume = np.asarray(volume)
    if not 1 <= volume.ndim <= 3:
        raise AnatomicaError(
            f"persistence was given a volume of shape {volume.shape}; expected 1, 2 or 3 dimensions."
        )
    if volume.dtype.kind not in "fbiu" or volume.dtype.itemsize > 8:
        raise AnatomicaError(f"persistence was given {volume.dtype} values; expected float32 or float64.")
    # Every smaller real type fits one of the two without loss, 64-bit integers beyond 2^53 excepted.
    dtype = np.result_type(volume.dtype.newbyteorder("="), np.float32)
    return np.ascontiguousarray(volume, dtype=dtype).reshape((1,) * (3 - volume.ndim) + volume.shape)


def _cores() -> int:
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def _explain(volumes: list[ndarray], clamp: float | None) -> str | None:
    """Which value of which volume the kernel refused."""
    for number, volume in enumerate(volumes):
        refused = ~np.isfinite(volume)
        expected = "finite values"
        if clamp and not refused.any():
            refused = (volume < -clamp) | (volume > 1 + clamp)
            expected = "probabilities from 0 to 1, as clamp was given"
        if refused.any():
            where = tuple(int(i) for i in np.argwhere(refused)[0])
            return f"volume {number} has the value {volume[where]} at voxel {where}; expected {expected}."
    return None
