"""Asks in a recipe: the same goals come back, with the reference that their levels lie on."""

import json

import numpy as np
import pytest

from anatomica.anatomy.catalogue import ANATOMIES
from anatomica.anatomy.frame import Frame
from anatomica.anatomy.label_map import LabelMap
from anatomica.generation.goal_recipe import goals_from_dict, goals_to_dict
from anatomica.measurement.goals import Goal, measured, resolve_asks
from anatomica.measurement.vocabulary.subject import Subject
from anatomica.spec.asks import parse_ask

HEART = ANATOMIES["cardiac"]
TEXTS = ("lv.volume_ml = +10 %", "lv.volume_ml <= 500")


def goals(on_reference: bool) -> tuple[Goal, ...]:
    array = np.zeros((16, 16, 16), np.uint8)
    array[4:10, 4:12, 5:12] = HEART.table.id_of("LV")
    s = Subject(LabelMap(array, Frame.model(HEART, 16).affine, HEART.table), HEART)
    asks = [parse_ask(text, HEART) for text in TEXTS]
    return resolve_asks(asks, HEART, s, on_reference, lambda key, percent: percent)


@pytest.mark.parametrize("on_reference", [True, False])
def test_goals_come_back(on_reference: bool) -> None:
    made = goals(on_reference)
    data = json.loads(json.dumps(goals_to_dict(made)))
    asks = [parse_ask(text, HEART) for text in TEXTS]
    again = goals_from_dict(data, asks, HEART)
    assert [(g.low, g.high) for g in again] == [(g.low, g.high) for g in made]
    volume = 6 * 8 * 7 * (HEART.edge_mm / 16) ** 3 / 1000
    assert again[0].low == pytest.approx(1.1 * volume)
    for one, other in zip(made, again, strict=True):
        assert (one.reference is None) == (other.reference is None) == (not on_reference)
        if one.reference is not None and other.reference is not None:
            assert measured(one, one.reference) == measured(other, other.reference)


def test_a_spoiled_recipe_is_refused() -> None:
    data, asks = goals_to_dict(goals(True)), [parse_ask(text, HEART) for text in TEXTS]
    with pytest.raises(ValueError, match="not those of the spec"):
        goals_from_dict(data, asks[:1], HEART)
    with pytest.raises(ValueError, match="not whole"):
        goals_from_dict(data | {"reference": data["reference"] | {"n": 17}}, asks, HEART)
    with pytest.raises(ValueError, match="voxels along an edge"):
        goals_from_dict(data | {"reference": data["reference"] | {"n": 10**6}}, asks, HEART)
    bounds = [data["bounds"][0] | {"low": float("inf"), "high": float("inf")}, data["bounds"][1]]
    with pytest.raises(ValueError, match="not finite"):
        goals_from_dict(data | {"bounds": bounds}, asks, HEART)
