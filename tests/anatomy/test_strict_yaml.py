"""YAML from users: what is meant is read, what could mean two things or never end is refused."""

import os
import threading

import pytest

from anatomica.anatomy.strict_yaml import MOST_BYTES, MOST_NODES, read_text, read_yaml
from anatomica.anatomy.vocabularies import read_mapping
from anatomica.errors import AnatomicaError


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("10", 10),
        ("010", 10),
        ("-3", -3),
        ("1e3", 1000.0),
        ("1.5e-3", 0.0015),
        (".5", 0.5),
        ("true", True),
        ("null", None),
        ("~", None),
        ("", None),
        ("no", "no"),
        ("on", "on"),
        ("1:30", "1:30"),
        ("0x10", "0x10"),
        ("1_000", "1_000"),
        ("2001-01-01", "2001-01-01"),
        ("2001-99-99", "2001-99-99"),
        ("<<", "<<"),
        ("!!str 5", "5"),
    ],
)
def test_plain_values_mean_what_they_seem_to_mean(text, value):
    found = read_yaml(f"a: {text}", "x.yaml")["a"]
    assert found == value
    assert type(found) is type(value)


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("a: 1\nb: 2\na: 3", r"x\.yaml, line 3: .*the key 'a' occurs twice"),
        ("5: a\n05: b", "the key 5 occurs twice"),
        ("a: &x [1]\nb: [*x, *x]", "line 2: .*aliases"),
        ("a: &x {b: 1}\nc: {<<: *x}", "line 2: .*aliases"),
        ("? [1]\n: 2", "a key is a word or a number"),
        ("? {a: 1}\n: 2", "a key is a word or a number"),
        (f"a: {'9' * 5000}", "5000 digits"),
        (f"a: 1e{'9' * 5000}", "5002 digits"),
        ("a: !!python/object:os.system {}", "could not determine a constructor"),
        ("a: !!timestamp 2001-99-99", "month"),
        ("[" * 20_000, "nested too deeply"),
        ("- " * 20_000, "nested too deeply"),
        ("a: {" * 3000, "nested too deeply"),
        ("[" + "1," * MOST_NODES + "]", "more than 30000 values"),
        ("#" * (MOST_BYTES + 1), "larger than 256 kB"),
        ("a: \x00", "special characters"),
        ("a: b: c", "mapping values are not allowed"),
        ("--- 1\n--- 2", "another document"),
        ("a: 'open", "unexpected end"),
    ],
)
def test_what_is_refused_is_one_sentence(text, reason):
    with pytest.raises(AnatomicaError, match=reason) as raised:
        read_yaml(text, "x.yaml")
    assert "\n" not in str(raised.value)
    assert str(raised.value).startswith("x.yaml")


def test_files_without_an_end_are_read_up_to_the_bound(tmp_path):
    with pytest.raises(AnatomicaError, match=r"'/dev/zero' is larger than 256 kB"):
        read_text(type(tmp_path)("/dev/zero"), "spec file")
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    writer = threading.Thread(target=pipe.write_bytes, args=(b"\xef\xbb\xbfa: 1",))
    writer.start()
    assert read_text(pipe, "spec file") == "a: 1"
    writer.join()


def test_a_label_is_mapped_once(tmp_path):
    path = tmp_path / "labels.yaml"
    path.write_text('5: LV\n"5": RV\n')
    with pytest.raises(AnatomicaError, match="the label '5' has 2 lines"):
        read_mapping(path)
    path.write_text("Heart: LV\nheart: RV\n")
    with pytest.raises(AnatomicaError, match="the label 'heart' has 2 lines"):
        read_mapping(path)
