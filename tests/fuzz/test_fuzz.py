"""A short run of `make fuzz`, as a user's process: the tests' own type checks would be in the way."""

import subprocess
import sys
from pathlib import Path


def test_damaged_inputs_are_refused_in_a_sentence() -> None:
    command = [sys.executable, str(Path(__file__).parent / "run.py"), "--share", "0.003"]
    made = subprocess.run(command, capture_output=True, text=True, timeout=280, check=False)
    assert made.returncode == 0, made.stdout + made.stderr
