"""Ways to damage a file: bytes, text, JSON and NIfTI headers. Each takes a `random.Random`."""

from __future__ import annotations

import copy
import json
import random
import struct
from typing import Any

DEEP: Any = []
for _ in range(200):
    DEEP = [DEEP]

ODD: tuple[Any, ...] = (
    None,
    True,
    False,
    "",
    "x",
    "\n[/red]\0",
    "../../etc/passwd",
    "é" * 300,
    0,
    -1,
    1,
    2,
    7,
    2**31,
    2**63,
    2**64,
    10**30,
    0.0,
    -0.5,
    1e-320,
    1e200,
    float("nan"),
    float("inf"),
    -float("inf"),
    [],
    {},
    [[]],
    [1, 2, 3],
    {"a": 1},
    DEEP,
)
"""Values that are wrong almost anywhere."""

WORDS = (
    ".nan",
    ".inf",
    "-1",
    "0",
    "1e200",
    "9" * 5000,
    "2001-99-99",
    "!!python/object:os.system {}",
    "&x [*x]",
    "*x",
    "[" * 50,
    "{a: 1, a: 2}",
    "'",
    '"',
    "|",
    "~",
    "no",
    "0x10",
    "\t",
    "%",
    "\u2028",
    "[/red]",
    "<script>",
    "- - -",
    "? [1]",
    "<<: {a: 1}",
)


def damage(data: bytes, rng: random.Random) -> bytes:
    """One to three random changes of bytes; never the same bytes again."""
    out = bytearray(data)
    for _ in range(rng.choice((1, 1, 1, 2, 3))):
        at = rng.randrange(len(out) + 1) if out else 0
        size = min(rng.choice((1, 1, 2, 8, 64, 1000)), len(out) - at)
        kind = rng.randrange(8)
        if kind == 0 and at < len(out):
            out[at] ^= 1 << rng.randrange(8)
        elif kind == 1 and at < len(out):
            out[at] = rng.choice((0, 255, 127, 128, 10, 32, rng.randrange(256)))
        elif kind == 2:
            del out[at : at + size]
        elif kind == 3:
            out[at:at] = rng.randbytes(rng.choice((1, 4, 100)))
        elif kind == 4:
            out[at : at + size] = bytes(size)
        elif kind == 5:
            del out[at:]
        elif kind == 6:
            out[at:at] = out[at : at + size]
        else:
            out += rng.randbytes(rng.choice((1, 10, 1000)))
    changed = bytes(out)
    return changed if changed != data else data + b"\0"


def damage_text(text: str, rng: random.Random) -> str:
    """A changed line, word or letter of YAML."""
    lines = text.splitlines()
    for _ in range(rng.choice((1, 1, 2, 4))):
        at = rng.randrange(len(lines))
        kind = rng.randrange(7)
        if kind == 0:
            lines.insert(at, lines[rng.randrange(len(lines))])
        elif kind == 1 and len(lines) > 1:
            del lines[at]
        elif kind == 2:
            key, colon, _ = lines[at].partition(":")
            lines[at] = f"{key}{colon} {rng.choice(WORDS)}"
        elif kind == 3:
            words = lines[at].split(" ")
            words[rng.randrange(len(words))] = rng.choice(WORDS)
            lines[at] = " ".join(words)
        elif kind == 4:
            lines[at] = " " * rng.randrange(5) + lines[at]
        elif kind == 5 and lines[at]:
            i = rng.randrange(len(lines[at]))
            lines[at] = lines[at][:i] + rng.choice("{}[]:,-#&*!|>'\"%@`0 9.\x00é") + lines[at][i + 1 :]
        else:
            lines = [line.replace(rng.choice("aeiou012"), rng.choice("xyz345")) for line in lines]
    return "\n".join(lines)


def damage_json(content: Any, rng: random.Random) -> Any:
    """One value somewhere replaced by an odd one, renamed, taken out or doubled."""
    content = copy.deepcopy(content)
    place = content
    while True:
        if not isinstance(place, dict | list) or not place:
            return rng.choice(ODD)
        key = rng.choice(list(place)) if isinstance(place, dict) else rng.randrange(len(place))
        inner = place[key]  # type: ignore[index]
        if isinstance(inner, dict | list) and inner and rng.random() < 0.8:
            place = inner
            continue
        break
    kind = rng.randrange(5)
    if kind == 0:
        del place[key]  # type: ignore[arg-type]
    elif kind == 1 and isinstance(place, dict):
        place[f"{key}x"] = place.pop(key)
    elif kind == 2 and isinstance(place, list):
        place.append(place[rng.randrange(len(place))])
    elif kind == 3 and isinstance(inner, int | float) and not isinstance(inner, bool):
        place[key] = inner * rng.choice((-1, 0, 2, 10, 1e9, 0.5))  # type: ignore[index]
    else:
        place[key] = rng.choice(ODD)  # type: ignore[index]
    return content


def json_text(content: Any) -> str:
    """JSON, with NaN and infinity as Python writes them."""
    return json.dumps(content)


SHORTS = (0, 1, 2, 3, 7, 8, 16, 32, 64, 256, 512, 768, 1024, 1280, 4096, 32767, -1, -32768)
FLOATS = (0.0, 1.0, -1.0, 1e-30, 1e30, 1e-3, 1000.0, float("nan"), float("inf"), 352.0, 1e9)
FIELDS = (
    [(offset, "h") for offset in (*range(40, 56, 2), 68, 70, 72, 74, 252, 254)]
    + [(offset, "f") for offset in (*range(76, 108, 4), 108, 112, 116, *range(256, 328, 4))]
    + [(0, "i"), (344, "i"), (348, "i"), (352, "i"), (356, "i")]
)
"""Offsets and types of a NIfTI-1 header: dimensions, data type, voxel sizes, offset, slope, affine, magic."""


def damage_header(data: bytes, rng: random.Random) -> bytes:
    """One to three fields of an uncompressed NIfTI header set to odd numbers."""
    out = bytearray(data)
    for _ in range(rng.choice((1, 1, 2, 3))):
        offset, kind = rng.choice(FIELDS)
        if offset + 4 > len(out):
            continue
        if kind == "h":
            struct.pack_into("<h", out, offset, rng.choice(SHORTS))
        elif kind == "i":
            struct.pack_into("<i", out, offset, rng.choice((*SHORTS, 2**31 - 1, 348, 540, 1 << 24)))
        else:
            struct.pack_into("<f", out, offset, rng.choice(FLOATS))
    return bytes(out)
