"""The cohort spec: which patients, how many, how they are distributed, and what becomes of them."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Annotated, Any, Literal

import yaml
from pydantic import BaseModel, ConfigDict, Field, ValidationError, field_validator, model_validator

from anatomica.anatomy.bounds import MOST_SEED
from anatomica.anatomy.strict_yaml import read_text, read_yaml
from anatomica.cohort.distributions import Distribution
from anatomica.cohort.rules import VALID
from anatomica.errors import AnatomicaError, nearest, shown
from anatomica.spec.strict import Real, Strict, Whole

Design = Literal["random", "sobol", "grid", "one-at-a-time"]
Export = Literal["nifti", "mesh", "nnunet", "bids", "monai"]
Share = Annotated[Real, Field(gt=0, le=1)]
MOST_PATIENTS = 1_000_000


class Table(Strict):
    """A table of real patients whose joint distribution is taken; without `columns` every column that is
    named like a quantity."""

    csv: str
    columns: Annotated[list[str], Field(min_length=1)] | None = None


class Targets(BaseModel):
    """Distributions by quantity, and how they hang together: by correlations, or by a table's copula."""

    model_config = ConfigDict(extra="allow", frozen=True, populate_by_name=True)
    __pydantic_extra__: dict[str, Distribution] = Field(init=False)  # pyright: ignore

    correlations: dict[str, Annotated[Real, Field(ge=-1, le=1)]] = {}
    """Pearson correlations of pairs of targets: "a, b": 0.4 (in YAML also [a, b]: 0.4)."""
    table: Annotated[Table | None, Field(alias="from")] = None

    @field_validator("table", mode="before")
    @classmethod
    def _file(cls, given: Any) -> Any:
        return {"csv": given} if isinstance(given, str) else given

    @property
    def distributions(self) -> dict[str, Distribution]:
        return dict(self.__pydantic_extra__ or {})

    @property
    def pairs(self) -> dict[tuple[str, str], float]:
        found = {}
        for text, value in self.correlations.items():
            names = [x.strip() for x in _outside_brackets(text)]
            if len(names) != 2 or names[0] == names[1]:
                raise AnatomicaError(
                    f"correlations: {text!r} is not a pair of two targets, as in [a, b]: 0.4"
                )
            if (names[1], names[0]) in found or (names[0], names[1]) in found:
                raise AnatomicaError(f"correlations: the pair {text!r} is given twice; give it once")
            found[names[0], names[1]] = value
        return found


class Stratum(Strict):
    """A share of the cohort, and the conditions that make a patient one of it."""

    share: Share
    when: Annotated[list[str], Field(min_length=1)] | None = None


class Privacy(Strict):
    """`nearest_training`: no patient may be nearer to a training patient than this percentile of the training
    patients' own distances to their nearest neighbours (p1: the first percentile)."""

    nearest_training: Annotated[str, Field(pattern=r"^p\d+(\.\d+)?$")]

    @property
    def percent(self) -> float:
        return float(self.nearest_training[1:])

    @model_validator(mode="after")
    def _below_all(self) -> Privacy:
        if self.percent > 50:
            raise ValueError("nearest_training is p0 to p50: above it most real patients would be refused")
        return self


class CohortSpec(Strict):
    """Everything that decides a cohort, except the model and the code."""

    name: Annotated[str, Field(pattern=r"^[A-Za-z0-9][A-Za-z0-9_-]{0,63}$")]
    anatomy: str
    size: Annotated[Whole, Field(ge=1, le=MOST_PATIENTS)]
    seed: Annotated[Whole, Field(ge=0, le=MOST_SEED)] = 0
    model: str | None = None
    """A model's folder; without it the anatomy's shipped weights."""
    targets: Targets = Targets()
    strata: dict[str, Share | Stratum] = Field(default_factory=dict)
    include: list[str] = Field(default_factory=lambda: [VALID])
    design: Design = "random"
    tries: Annotated[Whole, Field(ge=1, le=64)] = 4
    """Candidates per request at most."""
    replace: bool = False
    """Whether a request that fails all tries is replaced by a new one of the same distribution."""
    resolution: Annotated[Whole, Field(ge=8, le=512)] | None = None
    """Voxels along the cube's edge; without it the model's."""
    privacy: Privacy | None = None
    reference: str | None = None
    """A CSV of real patients that the report compares the cohort with."""
    exports: list[Export] = Field(default_factory=list)
    images: Literal["synth"] | None = None
    """`synth`: exports for machine learning come with images made from the labels."""
    test_share: Annotated[Real, Field(ge=0, lt=1)] = 0.2
    """Share of the patients in an export's test part."""

    @model_validator(mode="after")
    def _shares(self) -> CohortSpec:
        total = sum(self.shares.values())
        if self.strata and abs(total - 1) > 1e-6:
            raise ValueError(f"the strata's shares add up to {total:g}, not to 1")
        return self

    @property
    def shares(self) -> dict[str, float]:
        return {k: v.share if isinstance(v, Stratum) else v for k, v in self.strata.items()}

    @property
    def valid(self) -> bool:
        """Whether only valid patients are kept: met and plausible."""
        return any(text.strip() == VALID for text in self.include)


def read_spec(path: Path) -> CohortSpec:
    """A cohort spec from a YAML file."""
    return parse_spec(read_text(path, "cohort spec"), str(path))


def parse_spec(text: str, source: str = "cohort spec") -> CohortSpec:
    """A cohort spec from YAML text; every problem is one sentence."""
    data = read_yaml(_plain_keys(text), source)
    if not isinstance(data, dict):
        raise AnatomicaError(f"{source}: a cohort spec is a mapping with name, anatomy, size and targets")
    try:
        return CohortSpec.model_validate(data)
    except ValidationError as error:
        raise AnatomicaError(f"{source}: {_sentence(error)}") from None


def dump_spec(spec: CohortSpec) -> str:
    """YAML text that reads back to the same spec."""
    data = spec.model_dump(mode="json", by_alias=True, exclude_none=True, exclude_defaults=True)
    return yaml.safe_dump(data, sort_keys=False, width=100)


def schema() -> dict[str, Any]:
    """The JSON Schema of cohort specs, for editors that check YAML while one types."""
    return CohortSpec.model_json_schema(by_alias=True)


def _plain_keys(text: str) -> str:
    """`[a, b]: 0.4` as `"a, b": 0.4`: a list as a key is YAML, but no key of JSON."""
    return re.sub(
        r"(?<=[{,\s])\[([^\[\]{}:#\n]*(?:\[[^\[\]\n]*\][^\[\]{}:#\n]*)*)\](?=\s*:\s)", r'"\1"', text
    )


def _outside_brackets(text: str) -> list[str]:
    """Split at commas, but not within a quantity's own brackets (`cobb_deg[T5,T12]`)."""
    return re.split(r",(?![^\[]*\])", text)


def _sentence(error: ValidationError) -> str:
    """The first problem: where, what is wrong, what is allowed."""
    problems = error.errors()
    problem = next((p for p in problems if p["type"] == "extra_forbidden"), problems[0])
    where = ".".join(str(x) for x in problem["loc"] if str(x) not in ("Stratum", "float", "list[float]"))
    if problem["type"] == "extra_forbidden":
        name = str(problem["loc"][-1])
        known = list(CohortSpec.model_fields) if len(problem["loc"]) == 1 else []
        allowed = f"; allowed: {', '.join(known)}" if known else ""
        return f"{where}: unknown field{nearest(name, known)}{allowed}"
    message = problem["msg"].removeprefix("Value error, ")
    found = (
        "" if isinstance(problem["input"], dict | list | BaseModel) else f", found {shown(problem['input'])}"
    )
    place = f"{where}: " if where else ""
    return f"{place}{message[:1].lower()}{message[1:]}{found}"


EXAMPLE = """\
# A cohort of virtual patients. Check it: anatomica cohort draw cohort.yaml --out DIR --dry-run
name: dilated-aortas
anatomy: aortic              # cardiac, aortic, spinal, coronary, or a model folder's anatomy (see model)
size: 500                    # requests
seed: 7                      # the same spec, seed, model and version give the same cohort
# model: runs/my-aorta       # a model folder; without it the shipped weights

# Quantities of `anatomica quantities --anatomy aortic`, in their units. One of:
#   {normal: [mean, sd]}   {lognormal: [mean, sd]}   {uniform: [low, high]}   a plain number
#   {choice: [1, 2, 3]}    {choice: {1: 0.5, 2: 0.5}}   {empirical: table.csv}
# each with an optional   truncate: [low, high]
targets:
  ao.mid_ascending.diameter_mm: {normal: [42, 5], truncate: [34, 58]}
  ao.tortuosity: {uniform: [1.05, 1.35]}
  correlations: {[ao.mid_ascending.diameter_mm, ao.tortuosity]: 0.4}
  # from: patients.csv       # instead: all columns of a table of real patients, jointly (Gaussian copula)
  # from: {csv: patients.csv, columns: [ao.tortuosity]}

# Parts of the cohort. A count of the vocabulary means "at least one"; normal means none of the others.
# Your own: wide: {share: 0.3, when: ["ao.mid_arch.diameter_mm > 40"]}
strata: {normal: 0.7, bovine: 0.3}

include: [valid, "ao.mid_arch.max_diameter_mm < 55"]   # valid: every target met, and anatomically plausible
design: random               # random, sobol, grid or one-at-a-time
tries: 4                     # candidates per request before it is given up
replace: false               # true: a request that fails all tries is replaced by a new one
privacy: {nearest_training: p1}   # no nearer to a training patient than 99 % of these are to one another
# reference: patients.csv    # a table of real patients to compare with in the report
exports: [nifti, nnunet]     # nifti, mesh, nnunet, bids, monai
images: synth                # images for nnunet, bids and monai, made from the labels
"""
"""What `anatomica cohort init` writes."""
