"""anatomica quantities: the list, a population's percentiles, drawings."""

import json
import shutil

from typer.testing import CliRunner

from anatomica.cli import app
from anatomica.prior.percentiles import read_percentiles
from anatomica.prior.zoo import WEIGHTS

RUN = CliRunner()


def test_the_list_has_keys_with_brackets() -> None:
    result = RUN.invoke(app, ["quantities", "--anatomy", "spinal", "--json"])
    assert result.exit_code == 0, result.output
    rows = {x["key"]: x for x in json.loads(result.stdout)["quantities"]}
    assert rows["cobb_deg[A,B]"]["unit"] == "deg"
    assert "A's upper" in rows["cobb_deg[A,B]"]["definition"]
    assert rows["touch[A,B].area_mm2"]["definition"] == "area of the voxel faces that A and B share"
    assert {"pieces[A]", "uncovered[A,B].area_mm2", "T8.volume_ml"} <= rows.keys()


def test_a_population_goes_into_the_card(tmp_path) -> None:
    folder = tmp_path / "coronary"
    shutil.copytree(WEIGHTS / "coronary", folder)
    before = json.loads((folder / "card.json").read_text())
    result = RUN.invoke(app, ["quantities", "population", str(folder), "--count", "8", "--quiet"])
    assert result.exit_code == 0, result.output
    found = read_percentiles(folder)
    assert found is not None
    assert found.source == "phantoms 1000000 to 1000007 at 64^3"
    assert found.counts["vessel.area_mm2"] == 8
    after = json.loads((folder / "card.json").read_text())
    changed = {key for key in before if before[key] != after[key]}
    assert changed <= {"quantities", "checksum"}


def test_drawings_are_written(tmp_path) -> None:
    run = ["quantities", "draw", "--anatomy", "coronary", "--resolution", "64", "--out", str(tmp_path)]
    result = RUN.invoke(app, run)
    assert result.exit_code == 0, result.output
    assert (tmp_path / "quantities-coronary.png").stat().st_size > 10_000
