"""Damaged YAML: specs, anatomies, label mappings, cohorts; and asks, which are lines of text."""

from __future__ import annotations

import random

import yaml

import fuzz.mutators as mutators
from anatomica.anatomy.catalogue import ANATOMIES, anatomy
from anatomica.anatomy.records import shipped_text
from anatomica.anatomy.vocabularies import read_mapping
from anatomica.cohort import spec as cohorts
from anatomica.cohort.plan import Maker, make_plan
from anatomica.errors import AnatomicaError
from anatomica.measurement.placing import resolve
from anatomica.measurement.possible import refuse_impossible
from anatomica.spec.asks import parse_ask
from anatomica.spec.spec import Spec
from anatomica.spec.tasks import TASKS
from anatomica.spec.yaml import dump_spec, load_spec, parse_spec
from fuzz.made import CORONARY_FRAME, SPEC, Inputs, Refusing, Wrong, check_sentence

MAPPING = "5: Lu\n6: Ve\nvessel: Ve\n'*': background\n"
MOST_REQUESTS = 2000
"""A mutated cohort may be a million patients; more than these are not planned here."""
ASKS = (
    "ao.mid_ascending.diameter_mm = 38",
    "ao.tortuosity <= 1.25",
    "lv.volume_ml = 40..50",
    "lv.volume_ml = p90",
    "rv.volume_ml = +10 %",
    "lv.volume_ml < 1.5 * rv.volume_ml",
    "pieces[Ca] = 2",
    "cobb_deg[T5,T12] >= 10",
)


def spec_text(made: Inputs, rng: random.Random) -> bool:
    """A spec with odd lines: refused by file and line, or one that can be placed and written again."""
    text = rng.choice((SPEC, dump_spec(TASKS[rng.choice(sorted(TASKS))])))
    path = made.folder / "spec.yaml"
    path.write_text(mutators.damage_text(text, rng), encoding="utf-8", errors="replace")
    with Refusing("spec.yaml") as answer:
        spec = load_spec(path)
        if parse_spec(dump_spec(spec)) != spec:
            raise Wrong("another spec when written and read again")
        _place(spec)
    return answer.refused


def spec_values(made: Inputs, rng: random.Random) -> bool:
    """A spec with odd values in odd places."""
    content = mutators.damage_json(yaml.safe_load(SPEC), rng)
    path = made.folder / "spec.yaml"
    path.write_text(yaml.safe_dump(content), encoding="utf-8")
    with Refusing("spec.yaml") as answer:
        _place(load_spec(path))
    return answer.refused


def _place(spec: Spec) -> None:
    """A spec that was read may still not fit its anatomy or have no place; that is said of the constraint."""
    try:
        about = anatomy(spec.anatomy)
        frame = CORONARY_FRAME if about.name == "coronary" else None
        if frame is not None and all(c.domain.family in ("global", "box") for c in spec.constraints):
            refuse_impossible(resolve(spec.of(about), frame, None), frame)
    except AnatomicaError as error:
        check_sentence(str(error))


def record_text(made: Inputs, rng: random.Random) -> bool:
    """An anatomy's record with odd lines."""
    path = made.folder / "mine.yaml"
    name = rng.choice(sorted(ANATOMIES))
    lines = shipped_text(name).replace(f"name: {name}", "name: mine").splitlines()
    text = "\n".join(line for line in lines if not line.startswith("phantom:"))  # only shipped ones have it
    path.write_text(mutators.damage_text(text, rng), encoding="utf-8", errors="replace")
    with Refusing("mine.yaml") as answer:
        anatomy(str(path))
    return answer.refused


def mapping_text(made: Inputs, rng: random.Random) -> bool:
    """A label mapping with odd lines."""
    path = made.folder / "labels.yaml"
    path.write_text(mutators.damage_text(MAPPING, rng), encoding="utf-8", errors="replace")
    with Refusing("labels.yaml") as answer:
        read_mapping(path)
    return answer.refused


def cohort_text(made: Inputs, rng: random.Random) -> bool:
    """A cohort's spec with odd lines or values: refused, or a plan whose targets are numbers."""
    path = made.folder / "cohort.yaml"
    if rng.random() < 0.6:
        text = mutators.damage_text(cohorts.EXAMPLE, rng)
    else:
        example = cohorts.parse_spec(cohorts.EXAMPLE)
        text = yaml.safe_dump(mutators.damage_json(example.model_dump(mode="json", by_alias=True), rng))
    path.write_text(text, encoding="utf-8", errors="replace")
    with Refusing("cohort.yaml") as answer:
        spec = cohorts.read_spec(path)
        if cohorts.parse_spec(cohorts.dump_spec(spec)) != spec:
            raise Wrong("another cohort when written and read again")
        if spec.size <= MOST_REQUESTS:
            try:
                plan = make_plan(spec, Maker("", None, ""), path.parent)
                for index in {0, spec.size - 1}:
                    plan.request(index)
            except AnatomicaError as error:  # of a plan the target or condition is named
                check_sentence(str(error))
                return True
    return answer.refused


def ask_text(made: Inputs, rng: random.Random) -> bool:
    """An ask with odd letters: refused by quoting it, or read again from what it says of itself."""
    text = rng.choice(ASKS)
    about = ANATOMIES[rng.choice(sorted(ANATOMIES))]
    if rng.random() < 0.9:
        text = mutators.damage_text(text, rng)
    try:
        ask = parse_ask(text, about)
    except AnatomicaError as error:
        check_sentence(str(error))
        return True
    again = parse_ask(ask.text, about)
    if (again.left.keys, again.low, again.high, again.tolerance) != (
        ask.left.keys,
        ask.low,
        ask.high,
        ask.tolerance,
    ):
        raise Wrong("another ask when read again")
    return False
