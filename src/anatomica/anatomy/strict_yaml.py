"""YAML from users, read strictly: bounded, no key twice, no aliases; every problem is one sentence."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import yaml

from anatomica.errors import AnatomicaError

MOST_BYTES = 1 << 20
"""No record or mapping comes near a megabyte: the shipped ones have at most 5 kB."""


class _Strict(yaml.SafeLoader):
    """YAML keeps the last of two equal keys without a word, and aliases can unfold to any size."""

    def compose_node(self, parent: yaml.Node | None, index: Any) -> yaml.Node | None:
        if self.check_event(yaml.AliasEvent):
            mark = self.peek_event().start_mark
            raise yaml.MarkedYAMLError(problem="aliases (*name) are not read here", problem_mark=mark)
        return super().compose_node(parent, index)

    def construct_mapping(self, node: yaml.MappingNode, deep: bool = False) -> dict[Any, Any]:
        seen = set()
        for key, _ in node.value:
            found = (key.tag, key.value if isinstance(key, yaml.ScalarNode) else id(key))
            if found in seen:
                raise yaml.MarkedYAMLError(
                    problem=f"the key {key.value!r} occurs twice", problem_mark=key.start_mark
                )
            seen.add(found)
        return super().construct_mapping(node, deep)


def read_text(path: Path, what: str) -> str:
    """The text of a small file; `what` names its kind in errors."""
    try:
        if path.stat().st_size > MOST_BYTES:
            raise AnatomicaError(f"{what} {str(path)!r} is larger than {MOST_BYTES >> 20} MB")
        return path.read_text(encoding="utf-8")
    except FileNotFoundError:
        raise AnatomicaError(f"{what} {str(path)!r} does not exist") from None
    except (OSError, UnicodeDecodeError) as error:
        raise AnatomicaError(f"{what} {str(path)!r} cannot be read: {error}") from None


def read_yaml(text: str, source: str) -> Any:
    """The content of YAML text; `source` names it in errors."""
    if len(text) > MOST_BYTES:
        raise AnatomicaError(f"{source}: larger than {MOST_BYTES >> 20} MB")
    try:
        return yaml.load(text, Loader=_Strict)
    except (yaml.YAMLError, ValueError, RecursionError) as error:
        mark = getattr(error, "problem_mark", None)
        where = f", line {mark.line + 1}" if mark else ""
        reason = " ".join(str(getattr(error, "problem", None) or error).split())
        raise AnatomicaError(f"{source}{where}: not readable as YAML: {reason}") from None
