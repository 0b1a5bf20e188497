"""The benchmarks of models run on a tiny one and write what they say."""

from __future__ import annotations

import json
from pathlib import Path

from anatomica.evaluate.bench import generation
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
