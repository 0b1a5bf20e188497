"""The record of an anatomy: what a YAML file (or a cache, run, card or recipe) may say of one, checked."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field, StringConstraints, ValidationError, model_validator

from anatomica.anatomy.labels import BACKGROUND, fold
from anatomica.errors import AnatomicaError, nearest, shown

Slug = Annotated[str, StringConstraints(pattern=r"^[a-z0-9][a-z0-9_-]{0,39}$")]
"""An anatomy's name: it becomes part of file names."""
ShortName = Annotated[str, StringConstraints(pattern=r"^[A-Za-z0-9][A-Za-z0-9_.-]{0,39}$")]
Text = Annotated[str, StringConstraints(pattern=r"^[^\x00-\x1f\x7f]{1,100}$")]
Byte = Annotated[int, Field(ge=0, le=255)]
LabelId = Annotated[int, Field(ge=1, le=255)]
Finite = Annotated[float, Field(allow_inf_nan=False)]
Positive = Annotated[float, Field(gt=0, allow_inf_nan=False)]
Millilitres = Annotated[float, Field(ge=0, allow_inf_nan=False)]
Tissues = tuple[str, ...]


class _Part(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)


class LabelRecord(_Part):
    id: LabelId
    name: ShortName
    full_name: Text | None = Field(default=None, description="as the name if left out")
    synonyms: tuple[Text, ...] = ()
    snomed: Annotated[str, StringConstraints(pattern=r"^[0-9]{6,18}$")] | None = Field(
        default=None, description="SNOMED CT code of the structure, in quotes"
    )
    colour: tuple[Byte, Byte, Byte] | None = Field(default=None, description="RGB; chosen if left out")


class View(_Part):
    """The view in which the anatomy is known at a glance; `ghost` tissues are drawn translucent."""

    azimuth_deg: Finite = 0.0
    elevation_deg: Finite = 10.0
    zoom: Positive = 1.0
    ghost: Tissues = ()


class Expected(_Part):
    """What a usable case looks like; `anatomica prepare` leaves others out.

    `needed` tissues occur in the cube, at least `at_least` tissues in all; `whole` tissues do not touch the
    scan's border along `axes` (0 left-right, 1 back-front, 2 feet-head); `plausible_ml` bounds volumes in the
    cube.
    """

    needed: Tissues = ()
    at_least: Annotated[int, Field(ge=1)] = 1
    whole: Tissues = ()
    axes: tuple[Literal[0, 1, 2], ...] = (0, 1, 2)
    plausible_ml: dict[str, tuple[Millilitres, Millilitres]] = {}

    @model_validator(mode="after")
    def _ordered(self) -> Expected:
        for tissue, (low, high) in self.plausible_ml.items():
            if low > high:
                raise ValueError(f"plausible_ml of {tissue} goes from {low:g} down to {high:g}")
        return self


class SamplerDefaults(_Part):
    """How an exported model samples unless told otherwise.

    `eta` is the fresh noise of the multistep sampler (None: the preset's).
    """

    eta: Annotated[float, Field(ge=0, allow_inf_nan=False)] | None = None


class Record(_Part):
    """One anatomy as data."""

    name: Slug
    title: Text | None = None
    edge_mm: Annotated[Positive, Field(le=10_000)] = Field(description="edge of the model's cube")
    centre_on: Tissues = Field(default=(), description="the cube's centre; all tissues if left out")
    camera: View = View()
    several_pieces: Tissues = Field(default=(), description="all others come in one piece")
    column: bool = Field(
        default=False, description="labels follow one another along a column, as vertebrae do"
    )
    sampler: SamplerDefaults = SamplerDefaults()
    phantom: Slug | None = Field(default=None, description="the shipped phantoms' module")
    labels: Annotated[tuple[LabelRecord, ...], Field(min_length=1, max_length=255)]
    cases: Expected = Expected()

    @model_validator(mode="after")
    def _one_tissue_per_name(self) -> Record:
        """Each name in any spelling belongs to one tissue, else a spec could mean two."""
        owner = {fold(BACKGROUND): "the background"}
        ids: set[int] = set()
        for label in self.labels:
            if label.id in ids:
                raise ValueError(f"the label id {label.id} occurs twice")
            ids.add(label.id)
            for name in {fold(x) for x in (label.name, label.full_name or label.name, *label.synonyms)}:
                if not name:
                    raise ValueError(f"a name of {label.name} has neither letters nor digits")
                if owner.setdefault(name, label.name) != label.name:
                    raise ValueError(f"{label.name} and {owner[name]} share the name {name!r}")
        return self


def check_record(content: Any, source: str) -> Record:
    """A record from plain data; a problem is one sentence with the source and the field."""
    if not isinstance(content, dict):
        raise AnatomicaError(f"{source}: an anatomy is a mapping with name, edge_mm and labels")
    try:
        return Record.model_validate(content)
    except ValidationError as error:
        raise AnatomicaError(f"{source}: {_sentence(error)}") from None


_PARTS: dict[str, type[BaseModel]] = {
    "labels": LabelRecord,
    "camera": View,
    "cases": Expected,
    "sampler": SamplerDefaults,
}


def _sentence(error: ValidationError) -> str:
    """The first problem; a misspelt field is both unknown and missing, and the first tells more."""
    problems = error.errors()
    problem = next((p for p in problems if p["type"] == "extra_forbidden"), problems[0])
    steps = [str(step) for step in problem["loc"]]
    where = ".".join(steps)
    if problem["type"] == "extra_forbidden":
        allowed = (_PARTS[steps[0]] if len(steps) > 1 else Record).model_fields
        return f"unknown field {where!r}{nearest(steps[-1], allowed)}; allowed: {', '.join(allowed)}"
    if problem["type"] == "missing":
        return f"the field {where!r} is missing"
    message = problem["msg"].removeprefix("Value error, ")
    if problem["type"] == "value_error":
        return f"{where}: {message}" if where else message
    value = problem["input"]
    if isinstance(value, dict | list):
        return f"{where}: {message[:1].lower()}{message[1:]}"
    quotes = "; put it in quotes" if problem["type"] == "string_type" else ""
    return f"{where}: {message[:1].lower()}{message[1:]}, found {shown(value)}{quotes}"
