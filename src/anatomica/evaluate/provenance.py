"""Where a results file comes from: commit, code and weights, and whether today's are still the same."""

from __future__ import annotations

import platform
import subprocess
from collections.abc import Mapping
from typing import Any

import torch

from anatomica.evaluate.experiments.identity import PACKAGE, code_version
from anatomica.prior.zoo import shipped, shipped_hash
from anatomica.version import __version__

PICTURES = ("report", "evaluate.experiments.figures", "evaluate.provenance")
"""Code that decides no number: a table is not older because a picture is drawn differently today."""


def provenance(module: str, weights: Mapping[str, str]) -> dict[str, Any]:
    """What a results file says about its making.

    `module` is the module of the package whose imports decide the numbers, `weights` the hash of each
    anatomy's model.
    """
    return {
        "commit": commit(),
        "version": __version__,
        "module": module,
        "code": code_version(module, PICTURES),
        "weights": dict(sorted(weights.items())),
        "torch": torch.__version__,
        "python": platform.python_version(),
    }


def commit() -> str:
    """`git describe` of the checkout that the package lies in, else the version of the installed package."""
    try:
        # The package's own folder must be under version control: a virtual environment may lie in a checkout.
        known = _git("ls-files", "--error-unmatch", "__init__.py")
        return _git("describe", "--always", "--dirty", "--tags") if known else f"version {__version__}"
    except (OSError, subprocess.CalledProcessError):
        return f"version {__version__}"


def _git(*arguments: str) -> str:
    done = subprocess.run(["git", *arguments], cwd=PACKAGE, capture_output=True, text=True, check=True)
    return done.stdout.strip()


def outdated(about: Mapping[str, Any]) -> str:
    """Why a results file is not of today's code and weights, in words; empty if it is.

    >>> outdated({"weights": {}})
    'of older code'
    """
    reasons = []
    if about.get("code") is None or about["code"] != code_version(about["module"], PICTURES):
        reasons.append("code")
    if any(name not in shipped() or shipped_hash(name) != of for name, of in about["weights"].items()):
        reasons.append("weights")
    return f"of older {' and '.join(reasons)}" if reasons else ""


def made_by(about: Mapping[str, Any]) -> str:
    """One line of a results page: what its numbers were made by."""
    weights = ", ".join(f"{name} {hash}" for name, hash in about["weights"].items())
    code = f", code {about['code']}" if about.get("code") else ""
    return f"Made by commit {about['commit']}{code}" + (f", weights {weights}." if weights else ".")
