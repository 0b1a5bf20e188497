"""The benchmarks of models run on a tiny one and write what they say."""

from __future__ import annotations

import json
import time
from pathlib import Path

import pytest
import torch

from anatomica.evaluate.bench import generation
from anatomica.evaluate.bench.command import WHERE, busy_processes, command_cost, command_lines
from anatomica.generation.draw import draw
from tiny_prior import save_tiny_model


def test_generation_reports_both_batches_and_the_network_s_share(tmp_path: Path) -> None:
    model = save_tiny_model(tmp_path / "model")
    result = generation.run(tmp_path / "out", rounds=1, models=(str(model),))
    (found,) = result["models"].values()
    for batch in ("batch 1", "batch 8"):
        parts = found[batch]
        assert 0 < parts["U-Net"] < parts["sample"]
        assert parts["share of the U-Net"] == parts["U-Net"] / parts["sample"]
        assert parts["U-Net"] + parts["decoding"] <= parts["sample"] * 1.01
    assert json.loads((tmp_path / "out" / "generation.json").read_text()) == result
    assert (tmp_path / "out" / "generation.md").read_text().count("| coronary ") == 2


def test_samples_are_drawn_where_slopes_can_be_taken(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Levels of spines are settled by gradients, which torch refuses in inference mode."""
    seen = []

    def watched(*args, **more):
        seen.append(torch.is_inference_mode_enabled())
        return draw(*args, **more)

    monkeypatch.setattr(generation, "draw", watched)
    generation.run(tmp_path / "out", rounds=1, models=(str(save_tiny_model(tmp_path / "model")),))
    assert seen
    assert not any(seen)


def test_a_command_is_compared_with_its_own_sampling(tmp_path: Path) -> None:
    model = save_tiny_model(tmp_path / "model")
    cost = command_cost(("--model", str(model), "--samples", "2", "--steps", "2", "--until-valid", "1"), 1)
    for where in WHERE:
        row = cost[where]
        assert 0 < row["sampling"] < row["command"]
        assert 0 < row["sampling cpu"] < row["command cpu"]
        assert row["ratio"] == row["command"] / row["sampling"]
    text = "\n".join(command_lines(cost))
    assert text.count("| quiet |") == text.count("| beside one busy process |") == 1


def test_busy_processes_are_busy_and_end() -> None:
    with busy_processes(1) as (process,):
        stat = Path(f"/proc/{process.pid}/stat")
        while int(stat.read_text().rpartition(")")[2].split()[11]) < 5:  # ticks of the processor
            time.sleep(0.05)
        assert process.poll() is None
    assert process.poll() is not None
