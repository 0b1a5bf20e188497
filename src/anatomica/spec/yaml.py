"""Specs from and to YAML, with errors that quote the line and the allowed names."""

from __future__ import annotations

import difflib
import re
from pathlib import Path
from typing import Any

import yaml
from pydantic import BaseModel, ValidationError

from anatomica.anatomy.strict_yaml import read_text, read_yaml_nodes
from anatomica.errors import AnatomicaError, shown
from anatomica.spec import quantities, spec
from anatomica.spec.spec import Spec


def load_spec(path: Path | str) -> Spec:
    """Read a spec from a YAML file."""
    return parse_spec(read_text(Path(path), "spec file"), str(path))


def parse_spec(text: str, source: str = "spec") -> Spec:
    """Read a spec from YAML text; every problem is one sentence with its line."""
    data, root = read_yaml_nodes(text, source)
    if not isinstance(data, dict) or root is None:
        raise AnatomicaError(f"{source}: a spec is a mapping with name, anatomy, and constraints or ask")
    try:
        return Spec.model_validate(data)
    except ValidationError as error:
        raise AnatomicaError(_sentence(error, root, source, text)) from None


def dump_spec(wanted: Spec) -> str:
    """YAML text that loads back to the same spec; defaults are left out."""
    return yaml.dump(spec_to_dict(wanted), Dumper=_Flow, sort_keys=False, width=100)


def spec_to_dict(wanted: Spec) -> dict[str, Any]:
    """Plain data that is the same spec; defaults are left out, but never which domain it is."""
    data = wanted.model_dump(mode="json", exclude_defaults=True, exclude_none=True)
    for constraint, whole in zip(data.get("constraints", []), wanted.constraints, strict=True):
        constraint["domain"] = {"family": whole.domain.family, **constraint["domain"]}
    return data


class _Flow(yaml.SafeDumper):
    """Short lists on one line, as people write vectors; sentences (asks) on lines of their own."""


def _represent_list(dumper: yaml.SafeDumper, values: list):
    short = all(isinstance(v, str | int | float) and " " not in str(v) for v in values)
    return dumper.represent_sequence("tag:yaml.org,2002:seq", values, flow_style=short)


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
    # A misspelt field is both unknown and missing: the first tells the user more, and so does a sentence of
    # ours. Of the problems with each kind of value that a field takes, the one deepest in the text does.
    problem = max(problems, key=lambda p: len(_place_of(root, list(p["loc"]))[1]))
    for telling in ("value_error", "extra_forbidden"):
        problem = next((p for p in problems if p["type"] == telling), problem)
    where = [str(step) for step in problem["loc"]]
    message = " ".join(problem["msg"].removeprefix("Value error, ").split())
    if problem["type"] == "union_tag_invalid":
        told = problem.get("ctx", {})
        message = f"unknown {told['discriminator']} {shown(told['tag'])}; allowed: {told['expected_tags']}"
    line, place = _place_of(root, list(problem["loc"]))
    if problem["type"] == "missing":
        place.append(where[-1])
    if problem["type"] == "extra_forbidden":
        parent = next((_MODELS[w] for w in reversed(where[:-1]) if w in _MODELS), Spec)
        close = difflib.get_close_matches(where[-1], parent.model_fields, 1)
        hint = f" (did you mean {close[0]!r}?)" if close else ""
        message = f"unknown field {shown(where[-1])}{hint}; allowed: {', '.join(parent.model_fields)}"
    elif unknown := re.match("unknown (?:tissue|quantity) '(.*?)'", message):
        line = next((n for n, row in enumerate(_rows(text)) if unknown[1] in row), line)
    elif not where:
        # Of a whole spec; an ask that it quotes has a line of its own.
        quoted = re.match("'(.*?)'", message)
        key = quoted[1].split()[0] if quoted and quoted[1].split() else None
        line = next((n for n, row in enumerate(_rows(text)) if key and key in row), line)
    else:
        message = f"{'.'.join(place)}: {message[:1].lower()}{message[1:]}" if place else message
        if problem["type"] not in ("value_error", "missing") and not isinstance(
            problem["input"], dict | list
        ):
            message += f", found {shown(problem['input'])}"
    return f"{source}, line {line + 1} ({shown(_rows(text)[line].strip())}): {message}"


def _rows(text: str) -> list[str]:
    """Lines as YAML counts them, and one more: an empty value may begin after the last."""
    return [*re.split("\r\n|[\r\n\x85\u2028\u2029]", text), ""]


def _place_of(node: yaml.Node, loc: list[str | int]) -> tuple[int, list[str]]:
    """Line of the innermost YAML node on the way, and the way; union tags are not in it and passed over."""
    line, place = node.start_mark.line, []
    for step in loc:
        if isinstance(node, yaml.MappingNode):
            for key, value in node.value:
                if key.value == step:
                    line, node = key.start_mark.line, value
                    place.append(str(step))
                    break
        elif isinstance(node, yaml.SequenceNode) and isinstance(step, int) and step < len(node.value):
            node = node.value[step]
            line = node.start_mark.line
            place.append(str(step))
    return line, place
