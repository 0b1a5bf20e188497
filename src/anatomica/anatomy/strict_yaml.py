"""YAML from users, read strictly: bounded, no key twice, no aliases; every problem is one sentence.

Plain values are those of YAML 1.2: `010` is ten and `1e3` a number, while `no`, `1:30` and `2001-01-01` are
words.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import yaml

from anatomica.errors import AnatomicaError, shown

MOST_BYTES = 1 << 18
"""No spec, record or mapping comes near 256 kB: the shipped ones have at most 5 kB."""
MOST_NODES = 30_000
"""Keys, values and lists; as many are read in about two seconds."""
MOST_DIGITS = 40
"""Of a number; none in a spec has more."""


class _Strict(yaml.SafeLoader):
    """YAML keeps the last of two equal keys without a word, and aliases can unfold to any size."""

    yaml_implicit_resolvers: dict[Any, Any] = {}  # noqa: RUF012
    nodes = 0

    def compose_node(self, parent: yaml.Node | None, index: Any) -> yaml.Node | None:
        mark = self.peek_event().start_mark
        if self.check_event(yaml.AliasEvent):
            raise yaml.MarkedYAMLError(problem="aliases (*name) are not read here", problem_mark=mark)
        self.nodes += 1
        if self.nodes > MOST_NODES:
            raise yaml.MarkedYAMLError(problem=f"more than {MOST_NODES} values", problem_mark=mark)
        return super().compose_node(parent, index)

    def construct_mapping(self, node: yaml.MappingNode, deep: bool = False) -> dict[Any, Any]:
        seen = set()
        for key, _ in node.value:
            if not isinstance(key, yaml.ScalarNode):
                raise yaml.MarkedYAMLError(problem="a key is a word or a number", problem_mark=key.start_mark)
            found = self.construct_object(key)
            if found in seen:
                raise yaml.MarkedYAMLError(
                    problem=f"the key {shown(found)} occurs twice", problem_mark=key.start_mark
                )
            seen.add(found)
        return super().construct_mapping(node, deep)

    def construct_number(self, node: yaml.ScalarNode) -> int | float:
        text = str(self.construct_scalar(node))
        if len(text) > MOST_DIGITS:
            problem = f"a number of {len(text)} digits; at most {MOST_DIGITS} are read"
            raise yaml.MarkedYAMLError(problem=problem, problem_mark=node.start_mark)
        if node.tag.endswith(":int"):
            return int(text)
        return float(text.replace(".inf", "inf").replace(".nan", "nan").replace(".Inf", "inf"))


for _tag, _pattern, _first in (
    ("null", r"~|null|Null|NULL|", ["~", "n", "N", ""]),
    ("bool", r"true|True|TRUE|false|False|FALSE", list("tTfF")),
    ("int", r"[-+]?[0-9]+", list("-+0123456789")),
    (
        "float",
        r"[-+]?(\.[0-9]+|[0-9]+(\.[0-9]*)?)([eE][-+]?[0-9]+)?|[-+]?\.(inf|Inf|INF)|\.(nan|NaN|NAN)",
        list("-+.0123456789"),
    ),
):
    _Strict.add_implicit_resolver(f"tag:yaml.org,2002:{_tag}", re.compile(rf"^(?:{_pattern})$"), _first)
for _tag in ("int", "float"):
    _Strict.add_constructor(f"tag:yaml.org,2002:{_tag}", _Strict.construct_number)


def read_text(path: Path, what: str, most: int = MOST_BYTES) -> str:
    """The text of a small file of at most so many bytes; `what` names its kind in errors."""
    try:
        with path.open("rb") as file:
            data = file.read(most + 1)
        if len(data) > most:
            raise AnatomicaError(f"{what} {str(path)!r} is larger than {most >> 10} kB")
        return data.decode("utf-8-sig")
    except FileNotFoundError:
        raise AnatomicaError(f"{what} {str(path)!r} does not exist") from None
    except (OSError, UnicodeDecodeError, ValueError) as error:
        if isinstance(error, AnatomicaError):
            raise
        reason = getattr(error, "strerror", None) or error
        raise AnatomicaError(f"{what} {str(path)!r} cannot be read: {reason}") from None


def read_yaml(text: str, source: str) -> Any:
    """The content of YAML text; `source` names it in errors."""
    return read_yaml_nodes(text, source)[0]


def read_yaml_nodes(text: str, source: str) -> tuple[Any, yaml.Node | None]:
    """The content of YAML text, and its nodes, which know their lines."""
    if len(text) > MOST_BYTES:
        raise AnatomicaError(f"{source}: larger than {MOST_BYTES >> 10} kB")
    try:
        loader = _Strict(text)
        root = loader.get_single_node()
        return (None if root is None else loader.construct_document(root)), root
    except RecursionError:
        raise AnatomicaError(f"{source}: not readable as YAML: nested too deeply") from None
    except (yaml.YAMLError, ValueError, OverflowError, TypeError) as error:
        mark = getattr(error, "problem_mark", None)
        where = f", line {mark.line + 1}" if mark else ""
        reason = " ".join(str(getattr(error, "problem", None) or error).split())
        raise AnatomicaError(f"{source}{where}: not readable as YAML: {reason}") from None
