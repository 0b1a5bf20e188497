"""Shapes are checked in tests only: every annotated function of anatomica runs under beartype here."""

from jaxtyping import install_import_hook

install_import_hook("anatomica", "beartype.beartype")

import matplotlib  # noqa: E402

matplotlib.use("Agg")
