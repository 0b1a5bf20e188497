"""Anatomies are data: records are read strictly, travel whole, and every name of a tissue finds it."""

import hashlib
import json

import pytest
import yaml

from anatomica.anatomy.catalogue import ANATOMIES, anatomy, from_card, read_anatomy, to_card, to_record
from anatomica.anatomy.nifti import encode
from anatomica.data.phantoms import phantom
from anatomica.errors import AnatomicaError

PELVIS = """\
name: pelvis
edge_mm: 320
centre_on: [sacrum]
labels:
  - {id: 1, name: HL, full_name: left hip, synonyms: [hip_left]}
  - {id: 2, name: HR, full_name: right hip, synonyms: [hip_right], colour: [1, 2, 3]}
  - {id: 7, name: Sa, full_name: sacrum, snomed: "54735007"}
cases: {needed: [hip left, HR], plausible_ml: {left_hip: [10, 900]}}
sampler: {eta: 2}
"""


def pelvis(tmp_path, text: str = PELVIS):
    path = tmp_path / "pelvis.yaml"
    path.write_text(text)
    return path


def test_the_shipped_tables_are_those_of_the_shipped_models() -> None:
    """Written down once: ids, names and colours are in every NIfTI file and every model's card."""
    rows = {
        name: [(x.id, x.name, x.full_name, x.colour) for x in about.table.labels]
        for name, about in ANATOMIES.items()
    }
    assert list(rows) == ["cardiac", "aortic", "spinal", "coronary"]
    assert [len(table) for table in rows.values()] == [11, 7, 25, 4]
    digest = hashlib.sha256(json.dumps(rows).encode()).hexdigest()
    assert digest == "a70cb5bccc0f8b72514865892b5ae6ebdb78e42e2921af81d3dcff775fd0ad59"
    assert [about.edge_mm for about in ANATOMIES.values()] == [256.0, 256.0, 128.0, 12.8]


@pytest.mark.parametrize(
    "name", ["left_atrium", "left atrium", "Left-Atrium", "heart_atrium_left", "LA", "la"]
)
def test_every_name_of_a_tissue_finds_it(name: str) -> None:
    assert anatomy("cardiac").table[name].name == "LA"


def test_a_typo_names_the_nearest() -> None:
    with pytest.raises(AnatomicaError, match=r"tissue 'left_atrum' \(did you mean LA, left atrium\?\)"):
        anatomy("cardiac").table["left_atrum"]
    with pytest.raises(AnatomicaError, match=r"unknown anatomy 'cardica' \(did you mean 'cardiac'\?\)"):
        anatomy("cardica")


@pytest.mark.parametrize("about", ANATOMIES.values(), ids=ANATOMIES)
def test_no_name_belongs_to_two_tissues_and_codes_differ(about) -> None:
    for label in about.table.labels:
        assert all(about.table[name] is label for name in label.all_names)
    codes = [x.snomed for x in about.table.labels if x.snomed]
    # The left and right vessels of the arch share the structure's code, which has no side.
    assert len(codes) - len(set(codes)) == (2 if about.name == "aortic" else 0)


def test_a_record_may_name_tissues_in_any_way(tmp_path) -> None:
    about = anatomy(pelvis(tmp_path))
    assert about.table.names == ("background", "HL", "HR", "Sa")
    assert about.table.ids == (0, 1, 2, 7)
    assert about.centre_on == ("Sa",)
    assert about.expected.needed == ("HL", "HR")
    assert about.expected.plausible_ml == {"HL": (10, 900)}
    assert about.table["HR"].colour == (1, 2, 3)
    assert about.sampler.eta == 2


def test_a_record_travels_whole(tmp_path) -> None:
    about = anatomy(str(pelvis(tmp_path)))
    card = json.loads(json.dumps(to_card(about)))
    assert from_card(card, "card.json") == about
    assert read_anatomy(yaml.safe_dump(to_record(about)), "again") == about
    assert to_card(ANATOMIES["spinal"]) == {"anatomy": "spinal"}
    assert from_card({"anatomy": "spinal"}, "card.json") is ANATOMIES["spinal"]


def test_a_phantoms_file_says_nothing_new() -> None:
    """The bytes of a label map's file do not depend on synonyms or codes."""
    assert b"heart_atrium_left" not in encode(phantom("cardiac", 0, 32).label_map, compress=False)


@pytest.mark.parametrize(
    ("change", "expected"),
    [
        (("edge_mm: 320", "edge_mm: -1"), r"pelvis.yaml: edge_mm: .*greater than 0.*found -1"),
        (("edge_mm: 320", "edge_mm: .nan"), "edge_mm"),
        (("edge_mm: 320\n", ""), "the field 'edge_mm' is missing"),
        (("edge_mm: 320", "edge: 320"), r"unknown field 'edge' .did you mean 'edge_mm'.*allowed: name"),
        (("colour: [1, 2, 3]", "color: [1, 2, 3]"), r"unknown field 'labels.1.color' .did you mean 'colour'"),
        (("colour: [1, 2, 3]", "colour: [1, 2, 300]"), r"labels.1.colour.2: .*255.*found 300"),
        (("id: 7", "id: 2"), "the label id 2 occurs twice"),
        (("id: 7", "id: 0"), r"labels.2.id: .*greater than or equal to 1"),
        (("id: 7", "id: 256"), r"labels.2.id: .*less than or equal to 255"),
        (("name: Sa,", "name: TRUE,"), r"labels.2.name: .*valid string, found True; put it in quotes"),
        (('"54735007"', "54735007"), r"labels.2.snomed: .*put it in quotes"),
        (("[hip_right]", "[left-hip]"), "HR and HL share the name 'lefthip'"),
        (("name: Sa,", "name: background,"), "background"),
        (("centre_on: [sacrum]", "centre_on: [sacrun]"), r"centre_on: unknown tissue 'sacrun' .*Sa, sacrum"),
        (("[10, 900]", "[900, 10]"), "plausible_ml of left_hip goes from 900 down to 10"),
        (("name: pelvis", "name: ../pelvis"), "name: "),
        (("name: pelvis", "name: cardiac"), "'cardiac' is the name of a shipped anatomy"),
        (("edge_mm: 320", "phantom: cardiac\nedge_mm: 320"), "phantom: only shipped"),
        (("edge_mm: 320", "edge_mm: 320\nedge_mm: 100"), r"line 3: .*the key 'edge_mm' occurs twice"),
        (("full_name: left hip", "full_name: left hip, name: HL"), r"line 5: .*the key 'name' occurs twice"),
        (("centre_on: [sacrum]", "title: &a x\ncentre_on: [*a]"), "aliases"),
        (("labels:", "labels: ["), "not readable as YAML"),
        ((PELVIS, "- 1\n"), "an anatomy is a mapping"),
        ((PELVIS, "!!python/object:os.system {}"), "not readable as YAML"),
    ],
)
def test_a_wrong_record_is_one_sentence_with_file_and_field(tmp_path, change, expected: str) -> None:
    assert change[0] in PELVIS
    with pytest.raises(AnatomicaError, match=expected) as raised:
        anatomy(pelvis(tmp_path, PELVIS.replace(*change)))
    assert "pelvis.yaml" in str(raised.value)
    assert "\n" not in str(raised.value)


def test_files_that_are_none(tmp_path) -> None:
    with pytest.raises(AnatomicaError, match="does not exist"):
        anatomy(tmp_path / "none.yaml")
    with pytest.raises(AnatomicaError, match="cannot be read"):
        anatomy(tmp_path)
    large = pelvis(tmp_path, PELVIS + "# " + "x" * (1 << 20))
    with pytest.raises(AnatomicaError, match="larger than 256 kB"):
        anatomy(large)


@pytest.mark.parametrize(
    ("card", "expected"),
    [
        ({"anatomy": "pelvis"}, "card.json: unknown anatomy 'pelvis', and its record is missing"),
        ({"anatomy": ["pelvis"]}, "unknown anatomy"),
        ({"anatomy": "pelvis", "anatomy_record": 3}, "card.json, anatomy_record: an anatomy is a mapping"),
        ({"anatomy": "pelvis", "anatomy_record": {"name": "pelvis"}}, "'edge_mm' is missing"),
    ],
)
def test_a_card_with_a_wrong_record_is_refused(card, expected: str) -> None:
    with pytest.raises(AnatomicaError, match=expected):
        from_card(card, "card.json")


def test_a_card_whose_name_and_record_differ_is_refused(tmp_path) -> None:
    card = to_card(anatomy(pelvis(tmp_path))) | {"anatomy": "hips"}
    with pytest.raises(AnatomicaError, match="its anatomy is 'hips', but the record is of 'pelvis'"):
        from_card(card, "card.json")
