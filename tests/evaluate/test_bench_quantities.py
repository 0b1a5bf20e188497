"""The bench of quantities: errors against the phantoms' truth, kept and continued."""

import json
from pathlib import Path

import pytest

from anatomica.anatomy.catalogue import ANATOMIES
from anatomica.data.phantoms import phantom
from anatomica.evaluate.bench import quantities as bench
from anatomica.evaluate.truth.known import known
from anatomica.measurement.vocabulary.statistics import find
from anatomica.measurement.vocabulary.subject import Subject
from anatomica.spec.vocabulary import entries

ALLOWED = 2.5
"""Of a single phantom; the limits themselves are of a hundred (`anatomica bench quantities`)."""


@pytest.mark.parametrize("anatomy", list(ANATOMIES))
def test_hard_forms_are_near_the_truth(anatomy: str) -> None:
    about = ANATOMIES[anatomy]
    made = phantom(anatomy, 100_003, 128)
    truth = known(made.truth)
    s = Subject(made.label_map, about)
    far = {}
    for key, true in truth.items():
        limit = bench.limit_of(key, about)
        found = find(s, key)
        assert found.value is not None, (key, found.reason)
        scale = {"voxels": about.edge_mm / 128, "%": abs(true) / 100}.get(limit.unit, 1.0)
        most = (limit.most or limit.mean or 0.0) * ALLOWED
        if abs(found.value - true) > most * max(scale, 1e-9) + 1e-9:
            far[key] = (found.value, true)
    assert not far
    asked = {e.key for e in entries(anatomy)}
    assert len(asked & set(truth)) > (0.85 * len(asked) if anatomy != "spinal" else 25)


def test_a_stopped_run_goes_on(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    told: list[str] = []
    first = bench.run(
        tmp_path, 1, 64, ("coronary",), cache=tmp_path / "kept", tell=lambda x: told.append(str(x))
    )
    assert "coronary:" in told[-1]
    rows = {x["quantity"]: x for x in first["quantities"]["coronary"]}
    assert rows["vessel.area_mm2"]["compared"] == 1
    assert rows["vessel.area_mm2"]["unit"] == "%"
    order = [x["of_limit"] for x in first["quantities"]["coronary"]]
    assert order == sorted(order, reverse=True)
    assert json.loads((tmp_path / "quantities.json").read_text())["phantoms"] == 1
    assert "| vessel.area_mm2 |" in (tmp_path / "quantities.md").read_text()

    def never(*_args, **_more):
        raise AssertionError("drawn again")

    monkeypatch.setattr(bench, "phantom", never)
    again = bench.run(tmp_path, 1, 64, ("coronary",), cache=tmp_path / "kept")
    assert again["quantities"] == first["quantities"]
    with pytest.raises(AssertionError, match="drawn again"):
        bench.run(tmp_path, 2, 64, ("coronary",), cache=tmp_path / "kept")


def test_a_wrong_form_does_not_hold() -> None:
    about = ANATOMIES["cardiac"]
    rows = [
        {"seed": k, "truth": {"lv.volume_ml": 100.0, "septum.defects": 0.0}, "reasons": {}, "values": values}
        for k, values in enumerate(
            [{"lv.volume_ml": 101.0, "septum.defects": 0.0}, {"lv.volume_ml": 104.0, "septum.defects": 1.0}]
        )
    ]
    found = {x["quantity"]: x for x in bench.summary(rows, about, 128)}
    assert not found["lv.volume_ml"]["holds"]
    assert found["lv.volume_ml"]["bias"] == pytest.approx(2.5)
    assert found["lv.volume_ml"]["worst_seed"] == 1
    assert not found["septum.defects"]["holds"]
    good = {x["quantity"]: x for x in bench.summary(rows[:1], about, 128)}
    assert good["lv.volume_ml"]["holds"]
    assert good["septum.defects"]["holds"]
