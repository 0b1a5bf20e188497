"""Content hashes: a sample is known by everything that decides it, the code included."""

from __future__ import annotations

import ast
import hashlib
import json
from functools import cache
from pathlib import Path
from typing import Any

import anatomica
from anatomica import _kernel  # pyright: ignore[reportAttributeAccessIssue]

PACKAGE = Path(anatomica.__file__).parent
DRAWING = "evaluate.experiments.drawing"
"""The module whose imports decide a sample."""
MEASURING = "evaluate.experiments.measuring"
"""The module whose imports decide what is measured of a sample."""


@cache
def code_version(module: str, without: tuple[str, ...] = ()) -> str:
    """Hash of a module of the package and of all modules of the package that it imports, also indirectly.

    Code counts as the interpreter sees it: comments, docstrings and layout do not, so that tidying a file
    does not throw hours of samples away. The C++ kernel counts by the hash of its sources. Modules and
    packages named in `without` do not count, nor does what only they import.
    """
    digest = hashlib.sha256(_kernel.sources.encode())
    for name in sorted(_imported(module, without)):
        digest.update(f"{name} {_dump(_bare(_tree(name)))}".encode())
    return digest.hexdigest()[:16]


def _imported(module: str, without: tuple[str, ...] = ()) -> set[str]:
    """The module and everything of the package that it imports, whether at the top or inside functions."""
    seen, ahead = set(), [module]
    while ahead:
        name = ahead.pop()
        left_out = any(name == other or name.startswith(f"{other}.") for other in without)
        if name not in seen and not left_out and _file(name) is not None:
            seen.add(name)
            ahead += _imports_of(name)
    return seen


@cache
def _imports_of(name: str) -> tuple[str, ...]:
    """Names below the package that a module's import statements may mean; not all of them are modules."""
    found = []
    for node in ast.walk(_tree(name)):
        if isinstance(node, ast.ImportFrom) and node.module and node.module.split(".")[0] == "anatomica":
            base = node.module.removeprefix("anatomica").lstrip(".")
            found += [base, *(f"{base}.{alias.name}".lstrip(".") for alias in node.names)]
    return tuple(x for x in found if x)


def _file(name: str) -> Path | None:
    path = PACKAGE / name.replace(".", "/")
    candidates = (path.with_suffix(".py"), path / "__init__.py")
    return next((file for file in candidates if file.is_file()), None)


@cache
def _tree(name: str) -> ast.Module:
    file = _file(name)
    assert file is not None
    return ast.parse(file.read_text(encoding="utf-8"))


def _dump(node: object) -> str:
    """`ast.dump` without empty fields, which differ between versions of Python."""
    if isinstance(node, ast.AST):
        fields = ((name, value) for name, value in ast.iter_fields(node) if value not in (None, []))
        return f"{type(node).__name__}({', '.join(f'{name}={_dump(value)}' for name, value in fields)})"
    return f"[{', '.join(map(_dump, node))}]" if isinstance(node, list) else repr(node)


def _bare(tree: ast.Module) -> ast.Module:
    """The tree without docstrings and other strings that are statements."""
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
