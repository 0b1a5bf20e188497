"""Specs from and to YAML, with errors that quote the line and the allowed names."""

from __future__ import annotations

import difflib
import re
from pathlib import Path

import yaml
from pydantic import BaseModel, ValidationError

from anatomica.errors import AnatomicaError
from anatomica.spec import quantities, spec
from anatomica.spec.spec import Spec


def load_spec(path: Path | str) -> Spec:
    """Read a spec from a YAML file."""
    path = Path(path)
    try:
        text = path.read_text(encoding="utf-8")
    except FileNotFoundError:
        raise AnatomicaError(f"spec file {str(path)!r} does not exist") from None
    except (OSError, UnicodeDecodeError) as error:
        raise AnatomicaError(f"spec file {str(path)!r} cannot be read: {error}") from None
    return parse_spec(text, str(path))


def parse_spec(text: str, source: str = "spec") -> Spec:
    """Read a spec from YAML text; every problem is one sentence with its line."""
    try:
        root = yaml.compose(text, Loader=yaml.SafeLoader)
        data = yaml.safe_load(text)
    except yaml.YAMLError as error:
        mark = getattr(error, "problem_mark", None)
        where = f", line {mark.line + 1}" if mark else ""
        raise AnatomicaError(
            f"{source}{where}: not valid YAML ({getattr(error, 'problem', error)})"
        ) from None
    if not isinstance(data, dict) or root is None:
        raise AnatomicaError(f"{source}: a spec is a mapping with name, anatomy and constraints")
    try:
        return Spec.model_validate(data)
    except ValidationError as error:
        raise AnatomicaError(_sentence(error, root, source, text)) from None


def dump_spec(wanted: Spec) -> str:
    """YAML text that loads back to the same spec; defaults are left out."""
    data = wanted.model_dump(mode="json", exclude_defaults=True, exclude_none=True)
    for constraint, whole in zip(data["constraints"], wanted.constraints, strict=True):
        constraint["domain"] = {"family": whole.domain.family, **constraint["domain"]}
    return yaml.dump(data, Dumper=_Flow, sort_keys=False, width=100)


class _Flow(yaml.SafeDumper):
    """Short lists on one line, as people write vectors."""


def _represent_list(dumper: yaml.SafeDumper, values: list):
    scalars = all(isinstance(v, str | int | float) for v in values)
    return dumper.represent_sequence("tag:yaml.org,2002:seq", values, flow_style=scalars)


_Flow.add_representer(list, _represent_list)


_MODELS: dict[str, type[BaseModel]] = {
    "constraints": spec.Constraint,
    "target": quantities.Target,
    "betti": quantities.BettiPrior,
    "tolerance": quantities.Tolerance,
    "weights": spec.Weights,
    "global": spec.GlobalDomain,
    "cartesian": spec.CartesianDomain,
    "box": spec.BoxDomain,
    "interface": spec.InterfaceDomain,
    "curvilinear": spec.CurvilinearDomain,
    "spherical": spec.SphericalDomain,
    "cylindrical": spec.CylindricalDomain,
}
"""The model behind a place in a spec, by the last name on the way there."""


def _sentence(error: ValidationError, root: yaml.Node, source: str, text: str) -> str:
    """The first problem in a user's words: file, line, quoted line, what is wrong, what is allowed."""
    problems = error.errors()
    # A misspelt field is both unknown and missing: the first tells the user more.
    problem = next((p for p in problems if p["type"] == "extra_forbidden"), problems[0])
    where = [str(step) for step in problem["loc"]]
    message = problem["msg"].removeprefix("Value error, ")
    line = _line_of(root, list(problem["loc"]))
    if problem["type"] == "extra_forbidden":
        parent = next((_MODELS[w] for w in reversed(where[:-1]) if w in _MODELS), Spec)
        close = difflib.get_close_matches(where[-1], parent.model_fields, 1)
        hint = f" (did you mean {close[0]!r}?)" if close else ""
        message = f"unknown field {where[-1]!r}{hint}; allowed: {', '.join(parent.model_fields)}"
    elif unknown := re.match("unknown tissue '(.*?)'", message):
        line = next((n for n, row in enumerate(text.splitlines()) if unknown[1] in row), line)
    else:
        message = f"{'.'.join(where)}: {message[:1].lower()}{message[1:]}"
        if not isinstance(problem["input"], dict | list):
            message += f", found {problem['input']!r}"
    return f"{source}, line {line + 1} ({text.splitlines()[line].strip()!r}): {message}"


def _line_of(node: yaml.Node, loc: list[str | int]) -> int:
    """Line of the innermost YAML node on the way; union tags are not in it and passed over."""
    line = node.start_mark.line
    for step in loc:
        if isinstance(node, yaml.MappingNode):
            for key, value in node.value:
                if key.value == step:
                    line, node = key.start_mark.line, value
        elif isinstance(node, yaml.SequenceNode) and isinstance(step, int) and step < len(node.value):
            node = node.value[step]
            line = node.start_mark.line
    return line
