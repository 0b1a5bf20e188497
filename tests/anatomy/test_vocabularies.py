"""Vocabularies: other people's labels become our tissues, or an error says which do not."""

import pytest

from anatomica.anatomy.catalogue import ANATOMIES
from anatomica.anatomy.vocabularies import VOCABULARIES, read_mapping, resolve, translate
from anatomica.errors import AnatomicaError

CARDIAC, AORTIC, SPINAL, CORONARY = (ANATOMIES[a] for a in ("cardiac", "aortic", "spinal", "coronary"))


def test_totalsegmentator_ids_are_those_of_version_2():
    ids = VOCABULARIES["totalsegmentator"].ids
    assert len(ids) == 117
    spots = {1: "spleen", 25: "sacrum", 26: "vertebrae_S1", 27: "vertebrae_L5", 32: "vertebrae_T12"}
    spots |= {50: "vertebrae_C1", 51: "heart", 52: "aorta", 53: "pulmonary_vein", 54: "brachiocephalic_trunk"}
    spots |= {55: "subclavian_artery_right", 58: "common_carotid_artery_left", 62: "superior_vena_cava"}
    spots |= {63: "inferior_vena_cava", 79: "spinal_cord", 90: "brain", 92: "rib_left_1", 104: "rib_right_1"}
    spots |= {115: "rib_right_12", 116: "sternum", 117: "costal_cartilages"}
    assert {i: ids[i] for i in spots} == spots


@pytest.mark.parametrize(
    ("vocabulary", "anatomy", "expected"),
    [
        ("totalsegmentator", AORTIC, {52: "Ao", 54: "BCT", 58: "LCCA", 57: "RCCA", 56: "LSCA", 55: "RSCA"}),
        ("totalsegmentator", AORTIC, {52: "Ao", 1: "background", 62: "background"}),
        ("totalsegmentator", CARDIAC, {52: "Ao", 53: "PV", 62: "SVC", 63: "IVC", 54: "background"}),
        ("totalsegmentator", SPINAL, {27: "L5", 43: "T1", 50: "C1", 26: "background", 52: "background"}),
        ("heartchambers_highres", CARDIAC, {1: "Myo", 2: "LA", 3: "LV", 4: "RA", 5: "RV", 6: "Ao", 7: "PA"}),
        ("verse", SPINAL, {1: "C1", 8: "T1", 19: "T12", 20: "L1", 24: "L5"}),
        ("verse", SPINAL, {24: "L5", 25: "background", 26: "background", 28: "background"}),
        ("ctspine1k", SPINAL, {7: "C7", 16: "T9", 24: "L5", 25: "background"}),
        ("disrupt-cad", CORONARY, {1: "Lu", 2: "Ca", 3: "Ve"}),
    ],
)  # fmt: skip
def test_vocabularies_reach_our_tissues(vocabulary, anatomy, expected):
    found = dict.fromkeys(expected)
    assert translate(found, anatomy, VOCABULARIES[vocabulary], "x") == expected


@pytest.mark.parametrize("anatomy", [CARDIAC, AORTIC, SPINAL, CORONARY])
def test_every_tissue_is_reached_by_some_vocabulary(anatomy):
    reached = {t for v in VOCABULARIES.values() for t in v.tissues(anatomy).values()}
    assert set(anatomy.table.tissues) <= reached


def test_names_in_the_file_win_over_ids():
    # In version 1, label 7 was the aorta; in version 2 it is the pancreas.
    found = {7: "aorta", 8: "inferior_vena_cava"}
    assert translate(found, CARDIAC, None, "x") == {7: "Ao", 8: "IVC"}
    assert translate(found, CARDIAC, VOCABULARIES["totalsegmentator"], "x") == {7: "Ao", 8: "IVC"}


def test_detection_by_our_names_by_a_vocabulary_and_by_our_ids():
    assert translate({3: "LV", 9: "left atrium"}, CARDIAC, None, "x") == {3: "LV", 9: "LA"}
    assert translate({1: "spleen", 52: "aorta"}, AORTIC, None, "x") == {1: "background", 52: "Ao"}
    assert translate({16: None, 24: None}, SPINAL, None, "x") == {16: "T9", 24: "L5"}
    assert translate({}, SPINAL, None, "x") == {}


@pytest.mark.parametrize(
    ("found", "mapping", "match"),
    [
        ({52: None, 99: None}, None, r"52, 99; name their vocabulary"),
        ({1: "blob"}, None, r"1 \(blob\)"),
        ({1: None, 118: None}, VOCABULARIES["totalsegmentator"], r"does not know the labels 118"),
        ({52: "blob"}, VOCABULARIES["totalsegmentator"], r"52 \(blob\)"),
        ({1: None, 2: None}, VOCABULARIES["totalsegmentator"], "none of its labels"),
        ({1: None, 2: None}, {7: "LV"}, "names none of its labels; the file has 1, 2, the mapping names 7"),
        ({1: None, 2: None}, {1: "LV"}, r'leaves the labels 2 out.*"\*": background'),
        ({1: None}, {1: "Spleen"}, "`1: Spleen`: unknown tissue 'Spleen'; allowed: Myo"),
        ({1: None}, {1: "background"}, "none of its labels"),
        ({-1: "a.b"}, {1: "LV"}, "the file has a.b"),
    ],
)
def test_what_cannot_be_translated_is_named(found, mapping, match):
    with pytest.raises(AnatomicaError, match=match):
        translate(found, CARDIAC, mapping, "scan")


def test_a_users_mapping_by_id_name_and_rest():
    found = {1: None, 2: "Herz_links", 3: "rest"}
    mapping = {1: "left atrium", "herz_LINKS": "lv", "*": "background"}
    assert translate(found, CARDIAC, mapping, "x") == {1: "LA", 2: "LV", 3: "background"}


def test_yaml_mapping(tmp_path):
    path = tmp_path / "mine.yaml"
    path.write_text('5: RV\nheart_ventricle_left: LV\n"*": background\n')
    assert read_mapping(path) == {5: "RV", "heart_ventricle_left": "LV", "*": "background"}
    assert resolve(str(path)) == read_mapping(path)
    assert resolve("verse") is VOCABULARIES["verse"]
    assert resolve(None) is None


@pytest.mark.parametrize("text", ["", "- 1\n- 2\n", "5: [RV]\n", "5: 6\n", "true: RV\n", "{5: RV", "\xff: a"])
def test_broken_yaml_mapping_is_refused(tmp_path, text):
    path = tmp_path / "mine.yaml"
    path.write_bytes(text.encode("latin-1"))
    with pytest.raises(AnatomicaError, match=r"mine\.yaml"):
        read_mapping(path)


def test_unknown_mapping_name_lists_the_known_ones():
    with pytest.raises(AnatomicaError, match=r"'total'.*totalsegmentator, heartchambers_highres"):
        resolve("total")
