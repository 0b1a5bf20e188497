"""Content hashes: a sample is known by everything that decides it, the code included."""

from __future__ import annotations

import ast
import hashlib
import json
from functools import cache
from pathlib import Path
from typing import Any

import anatomica
from anatomica.experiments.plan import Method

PACKAGE = Path(anatomica.__file__).parent
NETWORKS = tuple(f"models/{name}" for name in ("autoencoder", "edm", "field", "layers", "unet", "population"))
SAMPLING = ("sampler", "generation", *NETWORKS, "experiments/drawing", "metrics/clouds", "metrics/frechet")
CONSTRAINTS = ("spec", "resolve", "moments", "parse", "frame", "domains", "experiments/targets")
MEASURING = (
    *CONSTRAINTS,
    "measurement",
    "certify",
    "generation",
    "experiments/measuring",
    "homology/betti",
    "metrics/fidelity",
    "metrics/precision",
)
GRADIENT = ("guidance", "potentials", "substructures", "homology")
NEWTON = (*GRADIENT, "gauss_newton", "residuals", "sparse", "polish")


def method_code(method: Method) -> str:
    """Version of the code that decides a sample of this method."""
    parts: tuple[str, ...] = SAMPLING
    if method.conditioning is not None:
        parts += (*CONSTRAINTS, "baselines")
    if method.guidance is not None:
        parts += (*CONSTRAINTS, "solvers")
        parts += NEWTON if method.guidance.solver == "gauss-newton" else GRADIENT
    return code_version(parts)


@cache
def code_version(parts: tuple[str, ...]) -> str:
    """Hash of modules or folders of the package as the interpreter sees them: comments, docstrings and layout
    do not count, so that tidying a file does not throw hours of samples away."""
    digest = hashlib.sha256()
    for part in parts:
        folder = PACKAGE / part
        files = sorted(folder.rglob("*.py")) if folder.is_dir() else [PACKAGE / f"{part}.py"]
        for file in files:
            tree = ast.parse(file.read_text(encoding="utf-8"))
            digest.update(f"{file.relative_to(PACKAGE)} {ast.dump(_bare(tree))}".encode())
    return digest.hexdigest()[:16]


def _bare(tree: ast.Module) -> ast.Module:
    """The tree without docstrings and other strings that stand alone."""
    for node in ast.walk(tree):
        body = getattr(node, "body", None)
        if isinstance(body, list):
            node.body = [s for s in body if not _is_text(s)] or [ast.Pass()]  # type: ignore[attr-defined]
    return tree


def _is_text(statement: ast.stmt) -> bool:
    return (
        isinstance(statement, ast.Expr)
        and isinstance(statement.value, ast.Constant)
        and isinstance(statement.value.value, str)
    )


def content_hash(content: Any) -> str:
    """Name of anything that is plain data."""
    text = json.dumps(content, sort_keys=True, default=str)
    return hashlib.sha256(text.encode()).hexdigest()[:32]
