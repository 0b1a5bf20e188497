"""What no label map can have is refused when the ask is read."""

import pytest

from anatomica.anatomy.catalogue import ANATOMIES
from anatomica.errors import AnatomicaError
from anatomica.spec.asks import parse_ask
from anatomica.spec.ranges import Range, range_of
from anatomica.spec.vocabulary import entries


@pytest.mark.parametrize(
    ("anatomy", "text", "words"),
    [
        ("cardiac", "lv.volume_ml = -5", "at least 0"),
        ("cardiac", "lv.volume_ml <= -1", "at least 0"),
        ("cardiac", "pieces[LV] = 1.5", "a whole number from 0 to 10000"),
        ("cardiac", "pieces[LV] = 1000000", "from 0 to 10000"),
        ("cardiac", "mv.annulus.eccentricity = 2", "from 0 to 1"),
        ("aortic", "ao.tortuosity <= 0.9", "at least 1"),
        ("aortic", "bovine = 2", "from 0 to 1"),
        ("coronary", "calcium.score = 2.5", "a whole number from 0 to 4"),
        ("coronary", "calcium.max_angle_deg = 400", "from 0 to 360"),
        ("coronary", "area_stenosis_pct >= 101", "from 0 to 100"),
        ("spinal", "kyphosis_deg = 200", "from -180 to 180"),
    ],
)
def test_what_a_definition_excludes_is_refused(anatomy: str, text: str, words: str) -> None:
    with pytest.raises(AnatomicaError, match=words):
        parse_ask(text, ANATOMIES[anatomy])


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("lv.volume_ml / 0 = 5", "divides by zero"),
        ("lv.volume_ml / (rv.volume_ml - rv.volume_ml) = 5", "divides by zero"),
        ("lv.volume_ml = 1e400", "too large"),
        ("lv.volume_ml = 140 ± 1e400", "too large"),
        ("1e12*1e12*1e12*1e12*" * 7 + "lv.volume_ml = 5", "too large a number"),
        ("(" * 300 + "lv.volume_ml = 5", "brackets"),
        ("lv.volume_ml = true", "a number"),
    ],
)
def test_what_is_no_number_is_refused(text: str, words: str) -> None:
    with pytest.raises(AnatomicaError, match=words):
        parse_ask(text, ANATOMIES["cardiac"])


def test_a_range_of_counts_must_hold_a_whole_number() -> None:
    count = Range(0, 4, whole=True)
    assert count.meets(1, 1)
    assert count.meets(0.5, 1.5)
    assert count.meets(None, 0)
    assert not count.meets(0.2, 0.8)
    assert not count.meets(4.5, None)


@pytest.mark.parametrize("anatomy", sorted(ANATOMIES))
def test_every_quantity_has_a_range(anatomy: str) -> None:
    for entry in entries(anatomy):
        known = range_of(entry)
        assert known.low < known.high
        assert known.whole == (entry.count and not entry.unit)
