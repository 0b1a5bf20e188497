"""The one writer: files are there whole or not at all, and an error names the file."""

import os
import threading
from pathlib import Path

import pytest

from anatomica.files import CannotWriteError, DamagedError, clear_unfinished, opened, sealed, write_atomic
from full_disk import full_disk


def test_a_full_disk_keeps_the_old_file_and_names_it(tmp_path):
    path = tmp_path / "x.json"
    write_atomic(path, b"old")
    with full_disk(0), pytest.raises(CannotWriteError) as stopped:
        write_atomic(path, b"new")
    assert stopped.value.filename == str(path)
    assert "No space left on device" in str(stopped.value)
    assert path.read_bytes() == b"old"
    assert os.listdir(tmp_path) == ["x.json"]


def test_a_folder_that_is_not_there_or_is_a_file_is_named(tmp_path):
    (tmp_path / "file").write_bytes(b"")
    for path in (tmp_path / "none" / "x", tmp_path / "file" / "x"):
        with pytest.raises(CannotWriteError, match="cannot be written"):
            write_atomic(path, b"")


def test_the_longest_name_can_be_written(tmp_path):
    path = tmp_path / ("ü" * 127)  # 254 bytes; file systems allow 255
    write_atomic(path, b"x")
    assert path.read_bytes() == b"x"


def test_many_writers_of_one_file_do_not_disturb_each_other(tmp_path):
    path = tmp_path / "x"
    threads = [threading.Thread(target=write_atomic, args=(path, bytes([i]) * 100_000)) for i in range(16)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(set(path.read_bytes())) == 1
    assert path.stat().st_size == 100_000
    assert os.listdir(tmp_path) == ["x"]


def test_permissions_follow_the_umask(tmp_path):
    old = os.umask(0o027)
    try:
        write_atomic(tmp_path / "x", b"")
    finally:
        os.umask(old)
    assert (tmp_path / "x").stat().st_mode & 0o777 == 0o640


def test_only_unfinished_files_are_cleared(tmp_path):
    left = [".x.json.0123456789abcdef.tmp", ".x.nii.gz.123.tmp"]
    kept = [".mine.tmp", "x.json.0123456789abcdef.tmp", ".x.json"]
    for name in (*left, *kept):
        (tmp_path / name).write_bytes(b"")
    clear_unfinished(tmp_path)
    assert sorted(os.listdir(tmp_path)) == sorted(kept)


def test_nothing_else_in_the_package_writes_files():
    """Whoever opens a file for writing elsewhere loses what this module promises."""
    package = Path(__file__).parents[1] / "src" / "anatomica"
    allowed = {"files.py", "evaluate/bench/homology.py", "prior/training/log.py"}  # /proc; a log that grows
    ways = (
        ".write_text(",
        ".write_bytes(",
        "savefig(",
        "save_file(",
        "os.replace(",
        'open("w',
        'open("a',
        '"w")',
    )
    for file in sorted(package.rglob("*.py")):
        name = file.relative_to(package).as_posix()
        if name not in allowed:
            text = file.read_text(encoding="utf-8")
            assert not [way for way in ways if way in text], name


def test_a_checksum_that_was_lost_is_damage() -> None:
    whole = sealed({"a": 1})
    assert opened(whole) == {"a": 1}
    assert opened({"a": 1}) == {"a": 1}
    lost = {"a": 2, "chacksum": whole["checksum"]}
    with pytest.raises(DamagedError, match="lost its checksum"):
        opened(lost)
    with pytest.raises(DamagedError, match="lost its checksum"):
        opened({"a": 1}, always=True)
