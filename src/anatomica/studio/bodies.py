"""What the page may send: bodies of requests, checked before anything is done with them."""

from __future__ import annotations

from typing import Annotated, Any

from pydantic import BaseModel, ConfigDict, Field

from anatomica.studio.asks import Ask
from anatomica.studio.bounds import MOST_SAMPLES
from anatomica.studio.markups import Box
from anatomica.studio.snap import Snap


class Body(BaseModel):
    model_config = ConfigDict(extra="forbid")


class NewPhantom(Body):
    anatomy: str
    seed: Annotated[int, Field(ge=0, lt=2**53)] = 0


class Asked(Body):
    """What is asked, as YAML or as JSON; `patient` is the one that is shown, `reference` whether the spec's
    domains and open targets are taken from it."""

    anatomy: str
    yaml: str | None = None
    spec: dict[str, Any] | None = None
    asks: dict[str, Ask] = {}
    lines: Annotated[list[str], Field(max_length=64)] = []
    patient: str | None = None
    reference: bool = True
    samples: Annotated[int, Field(ge=1, le=MOST_SAMPLES)] = 1
    seed: Annotated[int, Field(ge=0, lt=2**53)] = 0
    steps: Annotated[int, Field(ge=1, le=1000)] | None = None
    tries: Annotated[int, Field(ge=1, le=64)] | None = None


class Named(Body):
    name: str


class SnapTo(Body):
    patient: str
    snap: Snap


class Boxes(Body):
    boxes: Annotated[list[Box], Field(max_length=64)]
