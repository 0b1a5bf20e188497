"""What the parts of a spec share: a model that refuses unknown fields, and the types of small numbers.

Every number is finite and within bounds that no anatomy comes near, so that what passes can be computed with.
"""

from __future__ import annotations

from typing import Annotated

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field

from anatomica.anatomy.bounds import MOST_EDGE, MOST_MM

MOST_POINTS = 1 << 22
"""Of all domains of a spec together: twice 128^3; the largest of the paper has 64^3."""
MOST_DOMAINS = 1024
"""Of one constraint: rays, planes, or levels times angles."""
MOST_CONSTRAINTS = 128
"""Of one spec; the anatomy of the most tissues has 24."""
LEAST = 1e-6
"""The smallest tolerance and length; a smaller one is no number that a label map could have."""


def _no_truth(value: object) -> object:
    """Python takes true for 1."""
    if isinstance(value, bool):
        raise ValueError(f"a number is wanted, found {str(value).lower()}")
    return value


Real = Annotated[float, BeforeValidator(_no_truth)]
Whole = Annotated[int, BeforeValidator(_no_truth)]
Coordinate = Annotated[Real, Field(ge=-MOST_MM, le=MOST_MM)]
Vector = tuple[Coordinate, Coordinate, Coordinate]
Share = Annotated[Real, Field(ge=0, le=1)]
Place = tuple[Share, Share, Share]
Length = Annotated[Real, Field(ge=LEAST, le=MOST_MM)]
Extent = tuple[Length, Length, Length]
Points = Annotated[Whole, Field(ge=1, le=MOST_EDGE)]
Grid = tuple[Points, Points, Points]
Entry = Annotated[Real, Field(ge=-1, le=1)]
Symmetric = tuple[Entry, Entry, Entry, Entry, Entry, Entry]
Domains = Annotated[Whole, Field(ge=1, le=MOST_DOMAINS)]
Words = Annotated[str, Field(min_length=1, max_length=200, pattern=r"^[^\x00-\x1f\x7f]*$")]
"""A name on one line."""


class Strict(BaseModel):
    """Frozen; an unknown field is an error, and so is a number that is not finite."""

    model_config = ConfigDict(extra="forbid", frozen=True, allow_inf_nan=False)
