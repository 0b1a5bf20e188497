"""The door: a user's slip is one sentence and exit code 2, an error of ours one sentence and exit code 70."""

import re
import sys
import tempfile
from pathlib import Path

import pytest
from typer.testing import CliRunner

import anatomica.cli as cli
from anatomica.cli import app, main
from anatomica.errors import AnatomicaError


def said(monkeypatch, capsys, raised: BaseException) -> tuple[object, str]:
    def broken() -> None:
        raise raised

    monkeypatch.setattr(cli, "app", broken)
    monkeypatch.setattr(sys, "argv", ["anatomica", "generate"])
    with pytest.raises(SystemExit) as ended:
        main()
    return ended.value.code, capsys.readouterr().err


def test_an_unforeseen_error_is_a_sentence_and_a_log(monkeypatch, capsys, tmp_path) -> None:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    code, error = said(monkeypatch, capsys, IndexError("list index\nout of range [/red]"))
    assert code == 70
    assert len(error.strip().splitlines()) == 1
    assert "IndexError: 'list index\\nout of range [/red]'" in error
    (log,) = tmp_path.iterdir()
    assert str(log) in error
    text = log.read_text()
    assert "Traceback (most recent call last)" in text
    assert "anatomica generate" in text


def test_a_log_that_cannot_be_written_is_said_too(monkeypatch, capsys, tmp_path) -> None:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path / "nowhere"))
    code, error = said(monkeypatch, capsys, IndexError("x"))
    assert code == 70
    assert "its log could not be written (" in error
    assert "ANATOMICA_DEBUG=1" in error


def test_nothing_is_hidden_from_tests_or_debuggers(monkeypatch) -> None:
    def broken() -> None:
        raise IndexError("x")

    monkeypatch.setattr(cli, "app", broken)
    monkeypatch.setenv("ANATOMICA_DEBUG", "1")
    with pytest.raises(IndexError):
        main()


def test_the_machines_errors_name_the_file(monkeypatch, capsys) -> None:
    code, error = said(monkeypatch, capsys, OSError(28, "No space left on device", "out/a.png"))
    assert (code, error) == (2, "error: out/a.png: No space left on device\n")
    assert said(monkeypatch, capsys, MemoryError())[1] == "error: not enough memory\n"


@pytest.mark.parametrize(
    ("options", "reason"),
    [
        ("--lr 0", "a number above 0 is wanted, found '0'"),
        ("--lr nan", "a number is wanted, found 'nan'"),
        ("--lr inf", "a number is wanted, found 'inf'"),
        ("--minutes nan", "a number is wanted, found 'nan'"),
        ("--minutes -1", "a number above 0 is wanted, found '-1'"),
        ("--kl nan", "a number is wanted, found 'nan'"),
    ],
)
def test_numbers_that_are_none_are_refused(options: str, reason: str, tmp_path: Path) -> None:
    command = ["train", "autoencoder", "-d", str(tmp_path), "-o", str(tmp_path), *options.split()]
    result = CliRunner().invoke(app, command)
    assert result.exit_code == 2
    assert reason in re.sub(r"[\s│]+", " ", result.output)


@pytest.mark.parametrize("command", ["train autoencoder", "train denoiser", "train decoders"])
def test_a_device_that_is_none_is_refused_everywhere(command: str, tmp_path: Path) -> None:
    given = [*command.split(), "-d", str(tmp_path), "-o", str(tmp_path), "--device", "gpu"]
    result = CliRunner().invoke(app, given)
    assert "--device 'gpu' cannot be used" in str(result.exception)


def test_a_folder_that_is_gone_is_said(monkeypatch, capsys, tmp_path) -> None:
    gone = tmp_path / "gone"
    gone.mkdir()
    monkeypatch.chdir(gone)
    gone.rmdir()
    monkeypatch.setattr(sys, "argv", ["anatomica", "tasks"])
    with pytest.raises(SystemExit) as ended:
        main()
    assert ended.value.code == 2
    assert "the current folder does not exist any more" in capsys.readouterr().err


def test_what_is_endless_is_not_repeated(monkeypatch, capsys) -> None:
    code, error = said(monkeypatch, capsys, AnatomicaError("no model " + "x" * 100_000 + "; train one"))
    assert code == 2
    assert len(error) < 1000
    assert error.endswith("xxx; train one\n")


@pytest.mark.parametrize("command", ["cohort draw SPEC --dry-run", "cohort draw SPEC --workers 1"])
def test_a_cohort_needs_a_device_that_is_there(command: str, tmp_path: Path) -> None:
    spec = tmp_path / "cohort.yaml"
    spec.write_text("{name: a, anatomy: coronary, size: 1}")
    words = [str(spec) if word == "SPEC" else word for word in command.split()]
    result = CliRunner().invoke(app, [*words, "--out", str(tmp_path / "out"), "--device", "gpu"])
    assert "--device 'gpu' cannot be used" in str(result.exception)


def test_labels_need_a_file_to_be_of(tmp_path: Path) -> None:
    given = ["generate", "coronary", "--labels", "verse", "-s", "1", "-o", str(tmp_path)]
    assert "give --like FILE too" in str(CliRunner().invoke(app, given).exception)
