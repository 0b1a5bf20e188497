"""The bench of memory reads the process that it started, not its own."""

import json
import os
from pathlib import Path

import pytest

from anatomica.errors import AnatomicaError
from anatomica.evaluate.bench import memory
from anatomica.machine import peak_memory_mb
from tiny_prior import save_tiny_model


def test_a_look_at_a_process() -> None:
    now = memory._look(os.getpid())
    assert now is not None
    assert 10 < now.resident_mb <= now.peak_mb
    assert now.peak_mb <= (peak_memory_mb() or 0.0)
    assert memory._look(2**22 + 1) is None


def test_ten_samples_and_the_end(tmp_path: Path) -> None:
    model = str(save_tiny_model(tmp_path / "model"))
    found = memory.run(tmp_path / "out", 12, 1, model)
    assert list(found["after"]) == ["10 samples", "12 samples", "the end"]
    first, last = found["after"]["10 samples"], found["after"]["the end"]
    assert found["grown_mb"] == {what: last[what] - first[what] for what in first}
    assert json.loads((tmp_path / "out" / "memory.json").read_text())["voxels"] == found["voxels"]
    assert "| 10 samples |" in (tmp_path / "out" / "memory.md").read_text()


def test_a_command_that_fails_is_no_result(tmp_path: Path) -> None:
    model = str(save_tiny_model(tmp_path / "model"))
    with pytest.raises(AnatomicaError, match="exit code 2"):
        memory.run(tmp_path / "out", 10, 10**6, model)
