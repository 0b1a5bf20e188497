"""What the parts of a spec share: a model that refuses unknown fields, and the types of small vectors."""

from __future__ import annotations

from typing import Annotated

from pydantic import BaseModel, ConfigDict, Field

Vector = tuple[float, float, float]
Grid = tuple[Annotated[int, Field(ge=1)], Annotated[int, Field(ge=1)], Annotated[int, Field(ge=1)]]
Extent = tuple[Annotated[float, Field(gt=0)], Annotated[float, Field(gt=0)], Annotated[float, Field(gt=0)]]
Symmetric = tuple[float, float, float, float, float, float]


class Strict(BaseModel):
    """Frozen, and an unknown field is an error."""

    model_config = ConfigDict(extra="forbid", frozen=True)
