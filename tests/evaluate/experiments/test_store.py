"""Entries of an evaluation: what is damaged counts as missing."""

import json
from typing import Any

import numpy as np
import pytest

from anatomica.evaluate.experiments.store import load_arrays, load_numbers, save_arrays, save_numbers

ARRAYS = {"labels": np.arange(64, dtype=np.uint8).reshape(4, 4, 4), "seconds": np.array(1.5)}


def test_what_is_kept_comes_back(tmp_path) -> None:
    save_arrays(tmp_path / "a" / "x.npz", **ARRAYS)
    found = load_arrays(tmp_path / "a" / "x.npz")
    assert found is not None
    assert found.keys() == ARRAYS.keys()
    assert all(np.array_equal(found[k], ARRAYS[k]) and found[k].dtype == ARRAYS[k].dtype for k in ARRAYS)
    save_numbers(tmp_path / "x.json", {"a": (1, 2.5), "b": None})
    assert load_numbers(tmp_path / "x.json") == {"a": [1, 2.5], "b": None}


@pytest.mark.parametrize("data", [b"", b"PK", b"[1, 2]", b"{" * 10**5, b"\x80\x04."])
def test_what_is_not_an_entry_is_missing(data, tmp_path) -> None:
    (tmp_path / "x").write_bytes(data)
    assert load_arrays(tmp_path / "x") is None
    assert load_numbers(tmp_path / "x") is None
    assert load_arrays(tmp_path / "nothing") is None


def test_arrays_that_were_exchanged_are_missing(tmp_path) -> None:
    """Each array is whole, but they are not the ones that were written together."""
    save_arrays(tmp_path / "x.npz", **ARRAYS)
    with np.load(tmp_path / "x.npz") as kept:
        parts: dict[str, Any] = dict(kept)
    parts["seconds"] = np.array(2.5)
    np.savez_compressed(tmp_path / "x.npz", **parts)
    assert load_arrays(tmp_path / "x.npz") is None


def test_numbers_that_were_changed_are_missing(tmp_path) -> None:
    save_numbers(tmp_path / "x.json", {"error": 1.5})
    content = json.loads((tmp_path / "x.json").read_text())
    (tmp_path / "x.json").write_text(json.dumps(content | {"error": 0.5}))
    assert load_numbers(tmp_path / "x.json") is None
