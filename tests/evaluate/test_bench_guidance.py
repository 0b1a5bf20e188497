"""`anatomica bench guidance` runs to its end on a tiny model and writes what it says."""

import json
from pathlib import Path

import pytest

from anatomica.evaluate.bench import guidance
from tiny_prior import save_tiny_model


@pytest.mark.slow
def test_the_whole_benchmark(tmp_path: Path) -> None:
    model = save_tiny_model(tmp_path / "model", "cardiac", n=32)
    result = guidance.run(tmp_path / "out", rounds=1, batch=1, targets=1, folder=str(model), preset="small")
    assert json.loads((tmp_path / "out" / "guidance.json").read_text())["ratios"] == result["ratios"]
    assert all(seconds > 0 for seconds in result["whole_s_a_sample"].values())
    table = (tmp_path / "out" / "guidance.md").read_text()
    for name in (*result["step_ms_a_sample"], *result["ratios"], *result["time_to_met"]):
        assert f"| {name} |" in table
    for kind in ("geometry", "topology"):
        speeds = {name: x["speed"] for name, x in result["partial_decoding"][kind].items()}
        assert speeds["Anatomica-V, gradient, global, 64^3"] == 1
        assert all(f"| {name} |" in table for name in speeds)
