"""Every module can be imported where the standard library has no Unix modules."""

import subprocess
import sys

from anatomica.machine import peak_memory_mb, usable_cores

UNIX_ONLY = ("resource", "fcntl", "pwd", "grp", "termios", "posix")
IMPORT_ALL = f"""
import importlib, os, pkgutil, sys
import numpy, torch, matplotlib.pyplot, nibabel, scipy, rich, typer  # what others import is theirs
import fastapi, uvicorn
for name in {UNIX_ONLY!r}:
    sys.modules[name] = None  # `import name` raises ImportError
import anatomica
for module in pkgutil.walk_packages(anatomica.__path__, "anatomica."):
    if not module.name.endswith(("__main__", "_kernel")):
        importlib.import_module(module.name)
        print(module.name)
import builtins
from anatomica.machine import peak_memory_mb
def no_proc(path, *arguments, **options):
    raise FileNotFoundError(path)
builtins.open = no_proc
assert peak_memory_mb() is None
"""


def test_all_modules_import_without_unix_modules() -> None:
    done = subprocess.run([sys.executable, "-c", IMPORT_ALL], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert {"anatomica.evaluate.bench.generation", "anatomica.cli.sampling"} <= set(done.stdout.split())


def test_peak_memory_grows_with_what_is_held() -> None:
    before = peak_memory_mb()
    assert before is not None
    held = bytearray(64 * 2**20)
    held[::4096] = bytes([1]) * len(held[::4096])  # touched: pages that are not do not count
    after = peak_memory_mb()
    assert after is not None
    assert after >= before
    assert after > 64
    assert usable_cores() >= 1
