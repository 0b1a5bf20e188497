"""The shipped anatomies, one YAML file each, in the order in which they are listed."""

from __future__ import annotations

from importlib.resources import files

NAMES = ("cardiac", "aortic", "spinal", "coronary")


def shipped_text(name: str) -> str:
    """The YAML text of a shipped anatomy."""
    return files(__name__).joinpath(f"{name}.yaml").read_text(encoding="utf-8")
