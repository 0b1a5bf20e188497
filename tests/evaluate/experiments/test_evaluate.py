"""The geometric table end to end with the shipped weights: long, for `make test-slow`."""

from pathlib import Path

import pytest

from anatomica.cli.evaluate import run
from anatomica.prior.zoo import shipped


@pytest.mark.slow
@pytest.mark.skipif("cardiac" not in shipped(), reason="the cardiac weights are not in this checkout")
def test_geometric_quick(tmp_path: Path) -> None:
    said: list[str] = []
    run(
        "geometric",
        said.append,
        "quick",
        samples=None,
        steps=None,
        eta=None,
        only=None,
        data=None,
        models=None,
        half="test",
        baselines=tmp_path / "baselines",
        cache=tmp_path / "cache",
        out=tmp_path,
        batch=None,
        list_cells=False,
    )
    table = (tmp_path / "geometric.md").read_text()
    for task in ("right-ventricle", "mitral-valve", "aortic-trunk", "myocardium-wall"):
        assert f"| {task} | ours | 4 |" in table
        assert f"| {task} | tuned paper's update + polish | 2 |" in table
    assert "| real, cardiac | real patients | 4 |" in table
    assert sum("train baseline" in line for line in said) == 8
