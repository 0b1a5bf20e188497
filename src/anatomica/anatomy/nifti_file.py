"""One NIfTI file, read to its last byte: the header is checked before anything is allocated, the voxels come
in pieces and become small integers at once, and the checksum of a compressed file is looked at.
"""

from __future__ import annotations

import gzip
import logging
import math
import os
import struct
import zlib
from collections.abc import Iterator
from dataclasses import dataclass
from io import BufferedIOBase
from pathlib import Path

import numpy as np
from nibabel.nifti1 import Nifti1Header
from nibabel.nifti2 import Nifti2Header
from nibabel.spatialimages import HeaderDataError

from anatomica.anatomy.bounds import (
    LEAST_VOXEL_MM,
    MOST_HEADER_BYTES,
    MOST_LABELS,
    MOST_TRAILING_BYTES,
    MOST_VOXEL_MM,
    MOST_VOXELS,
)
from anatomica.anatomy.label_map import check_affine, label_ids
from anatomica.errors import AnatomicaError

MOST_DEFLATED = 1100
"""Bytes that a byte of a gzip file can stand for at most (1032, by deflate's format)."""
PIECE = 1 << 22
"""Voxels that are read at a time."""
HEADERS = {348: (Nifti1Header, b"n+1"), 540: (Nifti2Header, b"n+2")}
"""Header and magic of a single file, by the size that the file begins with."""
IN_MM = {1: 1000.0, 3: 0.001}
"""mm per unit of length by the header's code: metres and micrometres, as ITK reads them."""
_DAMAGED = (gzip.BadGzipFile, zlib.error, EOFError, HeaderDataError, ValueError, TypeError, KeyError)
_SILENT = logging.Logger("nibabel's remarks on headers", logging.CRITICAL)


@dataclass(frozen=True, eq=False)
class NiftiFile:
    """Labels as the file has them (uint8, uint16 or int32, first axis fastest), its affine to RAS mm, and the
    contents of its header's extensions."""

    array: np.ndarray
    affine: np.ndarray
    extensions: tuple[bytes, ...]


def read_nifti(path: Path) -> NiftiFile:
    """A label map's file: what is wrong with it is an `AnatomicaError`, a disk that fails an OSError."""
    with path.open("rb") as file:
        packed = path.name.endswith(".gz")
        size = os.fstat(file.fileno()).st_size
        stream = gzip.GzipFile(fileobj=file) if packed else file
        try:
            return _read(stream, size * MOST_DEFLATED if packed else size)
        except AnatomicaError as error:
            raise AnatomicaError(f"{path}: {error}") from None
        except _DAMAGED as error:
            reason = " ".join(str(error).split()) or type(error).__name__
            raise AnatomicaError(f"{path}: not a readable NIfTI file ({reason})") from None
        except OSError as error:
            raise OSError(error.errno, error.strerror or str(error), str(path)) from None


def _read(stream: BufferedIOBase, most_bytes: int) -> NiftiFile:
    header, extensions = _header(stream)
    shape = _shape(header)
    count = math.prod(shape)
    dtype = header.get_data_dtype()
    if dtype.kind not in "iuf":
        raise AnatomicaError(f"a label map holds integers, this file holds {dtype}")
    if count * dtype.itemsize > most_bytes:
        raise EOFError(f"its header announces {' x '.join(map(str, shape))} voxels, the file is too short")
    with np.errstate(all="ignore"):  # a header of NaNs is refused below
        affine = np.asarray(header.get_best_affine(), dtype=np.float64)
    affine[:3] *= IN_MM.get(int(header["xyzt_units"]) & 7, 1.0)
    check_affine(affine)
    edges = np.linalg.norm(affine[:3, :3], axis=0)
    if edges.min() < LEAST_VOXEL_MM or edges.max() > MOST_VOXEL_MM:
        raise AnatomicaError(
            f"its voxels have {' x '.join(f'{e:.4g}' for e in edges)} mm, between {LEAST_VOXEL_MM:g} and "
            f"{MOST_VOXEL_MM:g} mm can be read; is its header in other units?"
        )
    array = _collect(_pieces(stream, count, dtype, header.get_slope_inter()), count)
    if len(stream.read(MOST_TRAILING_BYTES + 1)) > MOST_TRAILING_BYTES:
        raise ValueError("it goes on after the voxels that its header announces")
    return NiftiFile(array.reshape(shape, order="F"), affine, extensions)


def _header(stream: BufferedIOBase) -> tuple[Nifti1Header, tuple[bytes, ...]]:
    """The header, corrected where nibabel knows how, and its extensions; the stream is at the voxels then."""
    start = _exactly(stream, 4)
    kinds = [HEADERS[size] for order in "<>" for size in struct.unpack(f"{order}i", start) if size in HEADERS]
    if not kinds:
        raise ValueError("it does not begin as a NIfTI file does")
    kind, magic = kinds[0]
    block = start + _exactly(stream, kind.template_dtype.itemsize - 4)
    header = kind(block, check=False)
    if header["magic"].item()[:3] != magic:
        raise ValueError(f"its magic is {header['magic'].item()!r}, that of a single file is {magic!r}")
    header.check_fix(logger=_SILENT, error_level=40)
    # A file whose header says 0 begins where the standard has it.
    offset = float(header["vox_offset"]) or float(len(block) + 4)
    if not len(block) <= offset <= MOST_HEADER_BYTES:
        raise ValueError(f"its voxels begin at byte {offset:g}")
    rest = _exactly(stream, int(offset) - len(block))
    return header, tuple(_extensions(rest, ">" if header.endianness == ">" else "<"))


def _extensions(data: bytes, order: str) -> Iterator[bytes]:
    """Contents of the header's extensions; ends at the first that does not fit."""
    if data[:1] in (b"", b"\0"):
        return
    at = 4
    while at + 8 <= len(data):
        size, _ = struct.unpack_from(f"{order}ii", data, at)
        if not 8 <= size <= len(data) - at:
            return
        yield data[at + 8 : at + size]
        at += size


def _shape(header: Nifti1Header) -> tuple[int, int, int]:
    dim = [int(d) for d in header["dim"]]
    if not 1 <= dim[0] <= 7:
        raise AnatomicaError(f"its header announces {dim[0]} axes; a label map has 3")
    shape = tuple(int(n) for n in header.get_data_shape())
    while len(shape) > 3 and shape[-1] == 1:
        shape = shape[:-1]
    if any(n < 1 for n in shape):
        raise AnatomicaError(f"its header announces a shape of {shape}; every axis has at least one voxel")
    if len(shape) != 3:
        raise AnatomicaError(
            f"a label map has 3 axes, this file has {len(shape)} (shape {shape}); "
            "extract one volume, or one label map from the channels, first"
        )
    if math.prod(shape) > MOST_VOXELS:
        raise AnatomicaError(
            f"its header announces {' x '.join(map(str, shape))} voxels; at most {MOST_VOXELS:.1e} are read, "
            "crop or resample it first"
        )
    return shape


def _pieces(
    stream: BufferedIOBase, count: int, dtype: np.dtype, scaling: tuple[float | None, float | None]
) -> Iterator[np.ndarray]:
    """The voxels in the file's order, as integers of any type."""
    slope, inter = scaling
    for start in range(0, count, PIECE):
        some = min(PIECE, count - start)
        piece = np.frombuffer(_exactly(stream, some * dtype.itemsize), dtype)
        if slope is not None and inter is not None and (slope, inter) != (1.0, 0.0):
            with np.errstate(all="ignore"):  # what overflows is infinite, and refused below
                piece = piece * slope + inter
        yield piece if piece.dtype.kind in "iu" else _rounded(piece)


def _rounded(piece: np.ndarray) -> np.ndarray:
    """Whole numbers out of floats; label maps are often stored so."""
    if not np.isfinite(piece).all():
        raise AnatomicaError("holds NaN or infinite values; a label map holds integers")
    rounded = np.rint(piece)
    if (rounded != piece).any():
        example = float(piece[rounded != piece][0])
        raise AnatomicaError(
            f"holds values that are not integers, such as {example:g}; is this an image, or was it "
            "resampled without nearest neighbour?"
        )
    if float(np.abs(rounded).max()) >= 2**31:
        raise AnatomicaError("holds values beyond 2^31; a label map holds small integers")
    return rounded.astype(np.int64)


def _collect(pieces: Iterator[np.ndarray], count: int) -> np.ndarray:
    """All pieces in the smallest of uint8, uint16 and int32 that fits them."""
    array = np.empty(count, np.uint8)
    seen: set[int] = set()
    start = 0
    for piece in pieces:
        low, high = int(piece.min()), int(piece.max())
        if high >= 2**31 or low < -(2**31):
            raise AnatomicaError("holds values beyond 2^31; a label map holds small integers")
        kind = np.int32 if low < 0 or high >= 2**16 else np.uint16 if high >= 2**8 else np.uint8
        if np.dtype(kind).itemsize > array.itemsize:
            if kind is np.int32 and count > MOST_VOXELS // 4:
                raise AnatomicaError(f"holds labels beyond 65535 in {count:.1e} voxels; renumber them first")
            array = np.concatenate([array[:start].astype(kind), np.empty(count - start, kind)])
        array[start : start + len(piece)] = piece
        seen.update(label_ids(array[start : start + len(piece)]))
        if len(seen) > MOST_LABELS:
            raise AnatomicaError(f"holds more than {MOST_LABELS} different values; is this an image?")
        start += len(piece)
    return array


def _exactly(stream: BufferedIOBase, size: int) -> bytes:
    data = stream.read(size)
    if len(data) < size:
        raise EOFError(f"it ends too early, {size - len(data)} bytes are missing")
    return data
