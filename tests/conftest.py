"""Shapes are checked in tests only: every annotated function of anatomica runs under beartype here."""

import pkgutil

import matplotlib
from jaxtyping import install_import_hook

import anatomica

matplotlib.use("Agg")
# The command line is left out: typer hands its callbacks a context of a private class of its own.
_CHECKED = [f"anatomica.{m.name}" for m in pkgutil.iter_modules(anatomica.__path__) if m.name != "cli"]
install_import_hook(_CHECKED, "typecheck.typechecked")
