"""Damaged YAML: specs, anatomies, label mappings, cohorts; and asks, which are lines of text."""

from __future__ import annotations

import math
import random

import yaml

import fuzz.mutators as mutators
from anatomica.anatomy.catalogue import ANATOMIES, anatomy
from anatomica.anatomy.records import shipped_text
from anatomica.anatomy.vocabularies import read_mapping
from anatomica.cohort import spec as cohorts
from anatomica.cohort.plan import Maker, make_plan
from anatomica.errors import AnatomicaError
from anatomica.generation.resolve import resolve_for
from anatomica.measurement.goals import goals_in
from anatomica.measurement.placing import resolve
from anatomica.measurement.possible import refuse_impossible
from anatomica.spec.asks import ask, parse_ask
from anatomica.spec.ranges import range_of
from anatomica.spec.spec import Spec
from anatomica.spec.tasks import TASKS
from anatomica.spec.vocabulary import entries
from anatomica.spec.yaml import dump_spec, load_spec, parse_spec
from fuzz.made import CORONARY_FRAME, SPEC, Inputs, Refusing, Wrong, check_sentence
from fuzz.map_targets import shipped_model

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
                plan = make_plan(spec, Maker("", ""), path.parent)
                for index in {0, spec.size - 1}:
                    plan.request(index)
            except AnatomicaError as error:  # of a plan the target or condition is named
                check_sentence(str(error))
                return True
    return answer.refused


TABLE = "id,ao.tortuosity,ao.mid_arch.diameter_mm,sex\n" + "".join(
    f"p{i},{1.05 + 0.02 * i:.2f},{24 + i},f\n" for i in range(12)
)
CELLS = ("", "nan", "inf", "-1", "1e400", "1,2", '"', "x", "٣", "0x10", "\x00", "9" * 5000, "=1+1", " 1.2 ")
BY_TABLE = "{name: a, anatomy: aortic, size: 4, targets: {from: patients.csv}}"


def patients_table(made: Inputs, rng: random.Random) -> bool:
    """A CSV of patients with odd cells, lines and headers: refused by name, or numbers for every request."""
    lines = [line.split(",") for line in TABLE.splitlines()]
    for _ in range(rng.choice((1, 1, 2, 5))):
        row = rng.choice(lines)
        kind, at = rng.randrange(6), rng.randrange(len(row)) if row else 0
        if kind < 3 and row:
            row[at] = rng.choice((*CELLS, rng.choice(lines[0] or [""])))
        elif kind == 3 and row:
            del row[at]
        elif kind == 4:
            lines.insert(rng.randrange(len(lines)), list(rng.choice(lines)))
        elif len(lines) > 1:
            del lines[rng.randrange(1, len(lines)) :]
    text = rng.choice(("\n", "\r\n", "\n\n")).join(",".join(row) for row in lines)
    path = made.folder / "patients.csv"
    path.write_bytes(text.encode(rng.choice(("utf-8", "utf-8", "utf-8-sig", "utf-16"))))
    spec = cohorts.parse_spec(BY_TABLE)
    try:
        plan = make_plan(spec, Maker("", ""), made.folder)
    except AnatomicaError as error:
        check_sentence(str(error), "patients.csv")
        return True
    if not all(math.isfinite(x) for i in range(spec.size) for _, x in plan.request(i).targets):
        raise Wrong("a target that is no number")
    return False


NUMBERS = (
    *("0", "-1", "1", "1.5", "0.5", "3", "40", "400", "1e9", "1e13", "1e400", "nan", "inf", "p50", "p101"),
    *("+10 %", "-200 %", "+3 mm", "1..2", "2..1", "0..0", "40..50", "true", "5 mL", "5 mm", "", "1 ± 0.1"),
    *("1 ± 1e99", "1 / 0", "٣", "0x1", "1_0", "-0", "p50..p90", "1..", "..", "KEY", "2 * KEY", "KEY / KEY"),
)
FORMULAS = ("-KEY", "KEY / OTHER", "KEY - KEY", "OTHER / (KEY - KEY)", "0 * KEY", "(" * 40 + "KEY")


def ask_placed(made: Inputs, rng: random.Random) -> bool:
    """Asks of the shipped models' quantities: refused in a sentence, or with bounds that can be met."""
    about = ANATOMIES[rng.choice(sorted(ANATOMIES))]
    keys = [e.key for e in entries(about.name)]
    keys += [f"pieces[{t}]" for t in about.table.tissues[:2]]
    left, other = rng.choice(keys), rng.choice(keys)
    if rng.random() < 0.3:
        left = rng.choice(FORMULAS)
    sign = rng.choice(("=", "=", "<=", ">=", "<", ">", "=="))
    text = f"{left} {sign} {rng.choice(NUMBERS)}".replace("KEY", rng.choice(keys)).replace("OTHER", other)
    try:
        rows = resolve_for(shipped_model(about.name), ask(text, *rng.choice(((), (f"{other} = p50",)))))
    except AnatomicaError as error:
        check_sentence(str(error))
        return True
    for goal in goals_in(rows):
        bounds = [x for x in (goal.low, goal.high) if x is not None]
        if not bounds or not all(math.isfinite(x) for x in bounds):
            raise Wrong(f"{goal.ask.text}: bounds that are no numbers")
        if goal.ask.left.single and not range_of(goal.entries[0]).meets(goal.low, goal.high):
            raise Wrong(f"{goal.ask.text}: no label map can have that")
    return False


def ask_text(made: Inputs, rng: random.Random) -> bool:
    """An ask with odd letters: refused by quoting it, or read again from what it says of itself."""
    text = rng.choice(ASKS)
    about = ANATOMIES[rng.choice(sorted(ANATOMIES))]
    if rng.random() < 0.9:
        text = mutators.damage_text(text, rng)
    try:
        found = parse_ask(text, about)
    except AnatomicaError as error:
        check_sentence(str(error))
        return True
    again = parse_ask(found.text, about)
    if (again.left.keys, again.low, again.high, again.tolerance) != (
        found.left.keys,
        found.low,
        found.high,
        found.tolerance,
    ):
        raise Wrong("another ask when read again")
    return False
