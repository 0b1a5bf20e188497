"""Binary frames: a JSON header that lists named arrays, then the arrays, as typed arrays of a page read them.

Little-endian: the header's length as uint32, the header, zeros up to a multiple of 4, then every array, each
padded the same way.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

import numpy as np

KINDS = {"u1": np.uint8, "u4": np.uint32, "f4": np.float32}
"""What a page has typed arrays for, by NumPy's short names."""


def encode(header: Mapping[str, Any], arrays: Mapping[str, np.ndarray]) -> bytes:
    """A header and arrays (uint8, uint32, float32) as one frame."""
    parts, listed = [], []
    for name, array in arrays.items():
        kind = array.dtype.str[1:]
        if kind not in KINDS:
            raise TypeError(f"a frame holds uint8, uint32 and float32; {name} is {array.dtype}")
        parts.append(_padded(np.ascontiguousarray(array).astype(f"<{kind}", copy=False).tobytes()))
        listed.append({"name": name, "kind": kind, "shape": list(array.shape)})
    text = json.dumps({**header, "arrays": listed}, separators=(",", ":")).encode()
    return b"".join([np.uint32(len(text)).astype("<u4").tobytes(), _padded(text), *parts])


def decode(frame: bytes) -> tuple[dict[str, Any], dict[str, np.ndarray]]:
    """The header and the arrays of a frame."""
    length = int(np.frombuffer(frame, "<u4", 1)[0])
    header = json.loads(frame[4 : 4 + length])
    at, found = 4 + length + -length % 4, {}
    for row in header.pop("arrays"):
        count, dtype = int(np.prod(row["shape"], dtype=int)), np.dtype(f"<{row['kind']}")
        found[row["name"]] = np.frombuffer(frame, dtype, count, at).reshape(row["shape"])
        size = count * dtype.itemsize
        at += size + -size % 4
    return header, found


def renamed(frame: bytes, patient: str) -> bytes:
    """The same frame of a patient under another id."""
    header, arrays = decode(frame)
    return encode(header | {"patient": patient}, arrays)


def _padded(data: bytes) -> bytes:
    return data + bytes(-len(data) % 4)
