"""Settings that a file brings: dataclasses whose fields state their bounds, checked by pydantic."""

from __future__ import annotations

import dataclasses
import json
from typing import Annotated, Any, TypeVar

from pydantic import ConfigDict, Field, TypeAdapter, ValidationError

from anatomica.errors import AnatomicaError, first_problem, shown

T = TypeVar("T")

STRICT = ConfigDict(extra="forbid")
Width = Annotated[int, Field(ge=1, le=4096)]
"""Channels of a layer."""
Depth = Annotated[int, Field(ge=0, le=64)]
"""Blocks or layers in a row."""
Levels = Annotated[tuple[Width, ...], Field(min_length=1, max_length=8)]
Above = Annotated[float, Field(gt=0, le=1e6, allow_inf_nan=False)]
FromZero = Annotated[float, Field(ge=0, le=1e6, allow_inf_nan=False)]
Real = Annotated[float, Field(ge=-1e6, le=1e6, allow_inf_nan=False)]


def to_dict(config: Any) -> dict[str, Any]:
    """A config as plain JSON values."""
    return dataclasses.asdict(config)


def from_dict(kind: type[T], values: Any) -> T:
    """The config written by `to_dict`; the first value that is unknown, missing or not allowed is named."""
    if not isinstance(values, dict):
        raise AnatomicaError(f"{kind.__name__}: settings are wanted, found {shown(values)}")
    fields = {f.name: f for f in dataclasses.fields(kind)}  # type: ignore[arg-type]
    unknown = sorted(set(values) - set(fields))
    if unknown:
        raise AnatomicaError(
            f"{kind.__name__}: unknown settings {shown(unknown)}; allowed: {', '.join(fields)}"
        )
    try:
        # As JSON, in which strict validation takes lists for tuples, but neither text nor true for a number.
        return TypeAdapter(kind).validate_json(json.dumps(values), strict=True)
    except ValidationError as error:
        raise AnatomicaError(f"{kind.__name__}: {first_problem(error)}") from None
