"""Shapes are checked in tests only: every annotated function of anatomica runs under beartype here."""

import os
import pkgutil

import hypothesis
import matplotlib
from jaxtyping import install_import_hook

import anatomica
from anatomica.machine import wait_without_spinning

wait_without_spinning()  # as on the command line: beside other work tests would take many times as long
matplotlib.use("Agg")
# The command line is left out: typer hands its callbacks a context of a private class of its own.
_CHECKED = [f"anatomica.{m.name}" for m in pkgutil.iter_modules(anatomica.__path__) if m.name != "cli"]
install_import_hook(_CHECKED, "typecheck.typechecked")
# Property tests draw new cases on a developer's machine, the same ones in CI, which must not fail by chance.
# No deadline: how long an example takes says more about what else the machine does.
hypothesis.settings.register_profile("here", derandomize=bool(os.environ.get("CI")), deadline=None)
hypothesis.settings.load_profile("here")
