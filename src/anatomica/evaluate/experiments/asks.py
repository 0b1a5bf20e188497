"""Asks of named quantities without a reference: how often they are met and valid at one draw, and at what
cost beside a task of the paper."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from statistics import mean
from typing import Any, NamedTuple

import numpy as np

from anatomica.anatomy.catalogue import ANATOMIES
from anatomica.anatomy.label_map import LabelMap
from anatomica.data.cache import Half
from anatomica.data.phantoms import phantom
from anatomica.errors import AnatomicaError
from anatomica.evaluate.experiments.identity import code_version, content_hash
from anatomica.evaluate.experiments.store import load_numbers, save_numbers
from anatomica.evaluate.experiments.tables import shown
from anatomica.evaluate.metrics.bootstrap import share_interval
from anatomica.evaluate.provenance import PICTURES, commit, provenance
from anatomica.files import write_json, write_text
from anatomica.generation.draw import generate
from anatomica.generation.options import Options
from anatomica.generation.resolve import resolve_for
from anatomica.generation.sample import Sample
from anatomica.measurement.certificate import Check
from anatomica.prior.percentiles import Percentiles, measured, percentiles_of
from anatomica.prior.zoo import Model, load_model
from anatomica.spec.asks import Asks, ask
from anatomica.spec.spec import Spec
from anatomica.spec.tasks import task

Tell = Callable[[str], None]
PERCENTS = (10, 50, 90)
KEYS = {
    "cardiac": (
        "lv.volume_ml",
        "rv.volume_ml",
        "la.volume_ml",
        "ra.volume_ml",
        "lv.mass_g",
        "lv.wall_thickness_mm.mean",
        "lv.long_axis_mm",
        "mv.annulus.diameter_mm",
        "ao.stj.diameter_mm",
    ),
    "aortic": (
        "ao.mid_ascending.diameter_mm",
        "ao.mid_arch.area_mm2",
        "ao.proximal_descending.diameter_mm",
        "ao.mid_descending.diameter_mm",
        "ao.descending.length_mm",
        "ao.tortuosity",
        "BCT.diameter_mm",
        "LSCA.diameter_mm",
        "landing_zone.length_mm",
    ),
    "spinal": (
        "T8.volume_ml",
        "T9.volume_ml",
        "T8.body.height_mm.middle",
        "T9.body.height_mm.anterior",
        "T8.wedge_ratio",
        "disc.T8-T9.height_mm",
        "canal.T8.area_mm2",
        "canal.T9.diameter_mm",
        "kyphosis_deg",
    ),
    "coronary": (
        "lumen.min_area_mm2",
        "lumen.mean_diameter_mm",
        "vessel.area_mm2",
        "plaque_burden_pct",
        "area_stenosis_pct",
        "wall.thickness_mm",
        "calcium.volume_mm3",
        "calcium.max_thickness_mm",
        "calcium.length_mm",
    ),
}
"""Of each anatomy nine quantities; the first 25 of their asks at three percentiles are drawn."""
SINGLE = 25
REFERENCES = 40
"""Phantoms that are looked at for one with the paper's task's domain."""
TRIPLES = {
    "cardiac": ("lv.volume_ml", "la.volume_ml", "rv.volume_ml", "lv.volume_ml"),
    "aortic": (
        "ao.mid_ascending.diameter_mm",
        "ao.descending.length_mm",
        "ao.mid_descending.diameter_mm",
        "ao.mid_ascending.diameter_mm",
    ),
    "spinal": ("T8.volume_ml", "kyphosis_deg", "T9.volume_ml", "T8.volume_ml"),
    "coronary": ("lumen.mean_diameter_mm", "area_stenosis_pct", "lumen.min_area_mm2", "vessel.area_mm2"),
}
"""Asked together: the first equal, the second in a range, the third at most a share of the fourth."""
PAPER = {
    "cardiac": "right-ventricle",
    "aortic": "multiscale-aorta-small",
    "spinal": "multiscale-spine-small",
    "coronary": "multiscale-vessel-small",
}
"""The task of the paper whose cost is the measure."""
FIRST: dict[Half, int] = {"test": 1, "development": 500_001}
"""The first seed of the draws; those of triples and references follow 1,000 and 3,000,000 later."""


@dataclass(frozen=True)
class Drawn:
    """One draw: what was asked, whether it was met and valid, its error in tolerances, its cost, and what
    was not met or is unlike the training patients."""

    anatomy: str
    kind: str
    asks: tuple[str, ...]
    seed: int
    met: bool
    valid: bool
    worst: float
    cpu_seconds: float
    unmet: tuple[str, ...] = ()
    unusual: tuple[str, ...] = ()


def single(population: Percentiles, anatomy: str, count: int = SINGLE) -> list[Asks]:
    """One quantity each, at the population's 10th, 50th and 90th percentile; every quantity comes once before
    any comes twice."""
    known = [key for key in KEYS[anatomy] if key in population.quantiles]
    each = [(key, PERCENTS[(i + turn) % 3]) for turn in range(3) for i, key in enumerate(known)]
    return [ask({key: round(population.value(key, percent), 4)}) for key, percent in each][:count]


def triple(population: Percentiles, anatomy: str, count: int) -> list[Asks]:
    """Three quantities together: one equality, one range, one relation."""
    one, between, less, than = TRIPLES[anatomy]
    found = []
    for i in range(count):
        percent = 20 + 60 * (i + 0.5) / count
        low, high = (population.value(between, p) for p in (30, 70))
        share = population.value(less, 60) / population.value(than, 50)
        found.append(
            ask(
                {one: round(population.value(one, percent), 4), between: (round(low, 4), round(high, 4))},
                f"{less} <= {share:.4f} * {than}",
            )
        )
    return found


def population_of(model: Model, phantoms: int) -> Percentiles:
    """The model's own percentiles, or those of fresh phantoms on its grid where it has none."""
    if model.percentiles is not None:
        return model.percentiles
    maps = (phantom(model.anatomy, 2_000_000 + i, model.n).label_map for i in range(phantoms))
    return percentiles_of(measured(maps, model.about), f"{phantoms} phantoms at {model.n}^3")


class Draw(NamedTuple):
    """One draw to make: of asks without a reference, or of the paper's task on a phantom."""

    kind: str
    texts: tuple[str, ...]
    seed: int
    wanted: Asks | Spec
    like: int | None = None


def draws(
    population: Percentiles, anatomy: str, singles: int, triples: int, paper: int, first: int
) -> list[Draw]:
    """All draws of an anatomy; those of the paper's task are for its cost."""
    found = [
        Draw("single", x.texts, first + i, x) for i, x in enumerate(single(population, anatomy, singles))
    ]
    found += [
        Draw("triple", x.texts, first + 1000 + i, x)
        for i, x in enumerate(triple(population, anatomy, triples))
    ]
    spec = task(PAPER[anatomy])
    return found + [Draw("paper", (spec.name,), first + i, spec, 3_000_000 + first + i) for i in range(paper)]


def drawn(model: Model, one: Draw, kept: Path) -> Drawn:
    """A draw's outcome, from the file in which it is kept, or drawn once and kept there."""
    found = load_numbers(kept)
    if found is None:
        like = None if one.like is None else reference(model, one.wanted, one.like)
        options = Options(tries=1)
        (sample,) = generate(model, one.wanted, seeds=[one.seed], reference=like, options=options)
        save_numbers(kept, asdict(_drawn(model, one.kind, one.texts, one.seed, sample)))
        found = load_numbers(kept)
    assert found is not None
    content: dict[str, Any] = found | {key: tuple(found[key]) for key in ("asks", "unmet", "unusual")}
    return Drawn(**content)


def reference(model: Model, wanted: Asks | Spec, first: int) -> LabelMap:
    """The first phantom, from a seed on in steps of 1,000, that has what the task is about: a window of a
    spine may not show it."""
    for seed in range(first, first + 1000 * REFERENCES, 1000):
        made = phantom(model.anatomy, seed, model.n).label_map
        try:
            resolve_for(model, wanted, made)
        except AnatomicaError:
            continue
        return made
    raise AnatomicaError(f"none of {REFERENCES} {model.anatomy} phantoms has a domain of the paper's task")


def kept_at(cache: Path, model: Model, one: Draw) -> Path:
    """Where a draw is kept, named after all that decides it: code, weights, card, what is asked and seed."""
    code = code_version("generation.draw", PICTURES), code_version(__name__.partition(".")[2], PICTURES)
    name = content_hash([*code, model.hash, model.card, one.kind, one.texts, one.seed, one.like])
    return cache / "asks" / model.anatomy / f"{one.kind}-{one.seed:06d}-{name}.json"


def _drawn(model: Model, kind: str, texts: tuple[str, ...], seed: int, sample: Sample) -> Drawn:
    return Drawn(
        model.anatomy,
        kind,
        texts,
        seed,
        sample.met,
        sample.valid,
        round(max((c.in_tolerances for c in sample.checks), default=0.0), 3),
        round(sample.cpu_seconds, 2),
        tuple(_in_words(c) for c in sample.checks if not c.met),
        tuple(str(x) for x in sample.unusual),
    )


def _in_words(c: Check) -> str:
    """A check that is not met: what was asked, and what the label map and the field have."""
    if c.note:
        return c.note if c.note.startswith(c.constraint) else f"{c.constraint}: {c.note}"
    asked, *found = ("missing" if x is None else _short(x) for x in (c.requested, c.achieved, c.fine))
    return f"{c.constraint} {c.quantity} {asked}: {found[0]}, field {found[1]} ({c.tolerance:.3g} allowed)"


def _short(x: float | list[float]) -> str:
    return f"{x:.4g}" if isinstance(x, int | float) else " to ".join(f"{y:.4g}" for y in x)


def run(
    out: Path,
    tell: Tell,
    anatomies: Sequence[str],
    singles: int,
    triples: int,
    paper: int,
    phantoms: int,
    cache: Path,
    models: Path | None = None,
    half: Half = "test",
) -> dict[str, Any]:
    """Draw what is not kept yet, and write OUT/asks.md and OUT/asks.json after every anatomy."""
    rows: list[Drawn] = []
    first = FIRST[half]
    sources: dict[str, str] = {}
    hashes: dict[str, str] = {}
    for name in anatomies:
        model = load_model(name if models is None else models / name)
        population = population_of(model, phantoms)
        model = replace(model, percentiles=population)
        sources[name], hashes[name] = population.source, model.hash
        for one in draws(population, name, singles, triples, paper, first):
            row = drawn(model, one, kept_at(cache, model, one))
            rows.append(row)
            state = "valid" if row.valid else "met" if row.met else "not met"
            why = "; ".join((*row.unmet, *row.unusual))
            tell(f"{name} {row.kind:6} {', '.join(row.asks)}: {state} ({row.cpu_seconds:.1f} s) {why}")
        summary = summaries(rows)
        out.mkdir(parents=True, exist_ok=True)
        content = {
            "summary": summary,
            "population": sources,
            "targets": half,
            "samples": [asdict(x) for x in rows],
            "provenance": provenance("evaluate.experiments.asks", hashes),
        }
        write_json(out / "asks.json", content)
        made_by = f"\nMade by `anatomica evaluate asks`, commit {commit()}, {half} targets.\n"
        write_text(out / "asks.md", table(summary) + failures(rows) + made_by)
    return {"summary": summaries(rows), "written": [out / "asks.md", out / "asks.json"]}


def summaries(rows: Sequence[Drawn]) -> list[dict[str, Any]]:
    """Shares met and valid, and cost in multiples of the paper's task, by anatomy and kind."""
    found = []
    for name in dict.fromkeys(x.anatomy for x in rows):
        own = [x for x in rows if x.anatomy == name]
        paper = [x.cpu_seconds for x in own if x.kind == "paper"]
        for kind in ("single", "triple", "paper"):
            here = [x for x in own if x.kind == kind]
            if here:
                seconds = mean(x.cpu_seconds for x in here)
                found.append(
                    {
                        "anatomy": name,
                        "kind": kind,
                        "draws": len(here),
                        "met": sum(x.met for x in here) / len(here),
                        "valid": sum(x.valid for x in here) / len(here),
                        "cpu_seconds": seconds,
                        "times_the_paper": seconds / mean(paper) if paper else None,
                    }
                )
    return found


def table(summary: Sequence[dict[str, Any]]) -> str:
    """asks.md."""
    lines = [
        "# Asks without a reference, one draw each",
        "",
        "Percentages with 95 % intervals (Wilson's). A triple is one equality, one range and one relation.",
        "",
        "| anatomy | asked | draws | met % | valid % | CPU s a draw | times the paper's task |",
        "|---|---|---|---|---|---|---|",
    ]
    for x in summary:
        times = "" if x["times_the_paper"] is None else f"{x['times_the_paper']:.2f}"
        met, valid = (_percent(x[key], x["draws"]) for key in ("met", "valid"))
        lines.append(
            f"| {x['anatomy']} | {x['kind']} | {x['draws']} | {met} | {valid} "
            f"| {x['cpu_seconds']:.1f} | {times} |"
        )
    return "\n".join(lines) + "\n"


def _percent(share: float, draws: int) -> str:
    hits = np.arange(draws) < round(share * draws)
    return shown(share_interval(hits), scale=100)


def failures(rows: Sequence[Drawn]) -> str:
    """Why draws of asks are not valid: by anatomy, most frequent first, each with its asks' quantities."""
    lines = ["", "Draws that are not valid, by cause:", ""]
    for name in dict.fromkeys(x.anatomy for x in rows):
        own = [x for x in rows if x.anatomy == name and x.kind != "paper"]
        why: Counter[str] = Counter()
        for x in own:
            if not x.valid:
                causes = {f"not met, {u.split(' ')[0].rstrip(':')}" for u in x.unmet}
                why.update(causes | {f"implausible, {u.split(' (')[0]}" for u in x.unusual})
        shown = "; ".join(f"{cause} ({count})" for cause, count in why.most_common())
        lines.append(f"- {name}, {sum(not x.valid for x in own)} of {len(own)}: {shown or 'none'}")
    return "\n".join(lines) + "\n"


PROFILES = {"quick": (6, 2, 2, 24), "here": (25, 10, 5, 200), "paper": (25, 25, 10, 200)}
"""Single asks, triples and draws of the paper's task per anatomy, and phantoms for percentiles."""


def amounts(profile: str) -> tuple[int, int, int, int]:
    if profile not in PROFILES:
        raise AnatomicaError(f"unknown profile {profile!r}; allowed: {', '.join(PROFILES)}")
    return PROFILES[profile]


ALL = tuple(name for name in ANATOMIES if name in KEYS)
