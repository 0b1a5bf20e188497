"""Reports: report.json complete, report.html one valid file with every sample and nothing from elsewhere."""

import base64
import io
import json
import re
from dataclasses import replace
from html.parser import HTMLParser

import pytest
import torch
from PIL import Image
from rich.console import Console

from anatomica.errors import AnatomicaError
from anatomica.generation.draw import generate
from anatomica.generation.feasibility import Comparison, compare
from anatomica.generation.options import Options
from anatomica.generation.recipe import Arguments, changed_versions, make_recipe, read_recipe
from anatomica.generation.resolve import resolve_for
from anatomica.guidance.solver import Guidance
from anatomica.measurement.goals import constraints_in
from anatomica.prior.zoo import load_model
from anatomica.report.html import report_html
from anatomica.report.tables import population_table, report_table
from anatomica.report.write import write_report
from anatomica.spec.yaml import parse_spec
from tiny_prior import save_tiny_model

SPEC = parse_spec(
    "name: giant <wall> & sons\nanatomy: coronary\nconstraints:\n"
    "- {name: wall, structure: [Ve], domain: {family: global, grid: [8, 8, 8]},"
    " target: {volume_ml: 1.9, centroid_mm: [0, 0, 0], betti: {b0: 1}}}\n"
    "- {name: middle, structure: [Lu], target: {mass: 0.001},"
    " domain: {family: box, grid: [4, 4, 4], centre_mm: [0, 0, 0], size_mm: [3, 3, 3]}}\n"
)
SEEDS = (5, 6)
VOID = {"meta", "img", "br", "hr", "link", "input"}


class Strict(HTMLParser):
    """Every tag closed in order; remembers text and what is loaded or linked."""

    def __init__(self) -> None:
        super().__init__()
        self.open: list[str] = []
        self.text: list[str] = []
        self.links: list[str] = []

    def handle_starttag(self, tag, attrs):
        if tag not in VOID:
            self.open.append(tag)
        self.links += [value for key, value in attrs if key in ("src", "href") and value]

    def handle_endtag(self, tag):
        assert self.open.pop() == tag

    def handle_data(self, data):
        self.text.append(data)


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    out = tmp_path_factory.mktemp("report")
    model = load_model(save_tiny_model(out / "model", patients=40))
    resolved = resolve_for(model, SPEC)
    samples = generate(
        model, SPEC, seeds=SEEDS, options=Options(steps=3, trace=True, guidance=Guidance(polish=0))
    )
    comparisons = compare(model, resolved)
    recipe = make_recipe(model, SPEC, resolved, Arguments(samples=3))
    write_report(out, samples, SPEC, resolved, recipe, comparisons)
    return out, samples, comparisons, resolved


def test_html_is_one_valid_file_with_every_sample(made) -> None:
    out, samples, *_ = made
    page = (out / "report.html").read_text(encoding="utf-8")
    parser = Strict()
    parser.feed(page)
    assert parser.open == []
    text = " ".join(parser.text)
    assert "giant <wall> & sons" in text
    assert all(f"Seed {seed}" in text for seed in SEEDS)
    assert text.count("not met") >= len(samples)
    assert "http" not in re.sub(r"base64,[^\"]*", "", page)  # a picture may spell it by chance
    # One picture per sample, inside the file and readable; two charts of curves and a persistence diagram.
    assert len(parser.links) == len(SEEDS)
    charts = re.findall("<svg.*?</svg>", page)
    assert len(charts) == 3 * len(SEEDS)
    assert not any("nan" in chart or "inf" in chart for chart in charts)
    for link in parser.links:
        kind, data = link.split(",", 1)
        assert kind == "data:image/png;base64"
        with Image.open(io.BytesIO(base64.b64decode(data))) as image:
            assert min(image.size) > 100


def test_json_holds_checks_curves_features_and_population(made) -> None:
    out = made[0]

    def refuse(constant: str):
        raise AssertionError(f"{constant} is not JSON")

    data = json.loads((out / "report.json").read_text(encoding="utf-8"), parse_constant=refuse)
    assert [s["seed"] for s in data["samples"]] == list(SEEDS)
    first = data["samples"][0]
    assert first["met"] is False
    assert [c["quantity"] for c in first["checks"]] == ["volume", "centroid", "components", "volume"]
    volume = next(c for c in first["curves"] if c["constraint"] == "wall" and c["quantity"] == "volume")
    assert (volume["unit"], volume["steps"], len(volume["errors"])) == ("%", [1, 2, 3, 4], 4)
    assert first["diagrams"][0]["wanted"] == [1, None, None]
    wall, middle = data["population"]
    assert wall["outside"]
    assert wall["nearest"]["volume_ml"] < 1.9
    assert "box domain" in middle["note"]
    assert data["not_placed"] == []
    assert (out / "sample-000005.png").is_file()


def test_tables_say_units_and_the_nearest_target(made) -> None:
    _, samples, comparisons, _ = made
    console = Console(width=140, record=True, file=io.StringIO())
    console.print(population_table(comparisons))
    console.print(report_table(samples))
    said = console.export_text()
    assert re.search(r"wall +│ volume +│ +1\.9 mL", said)
    assert "tried all the same" in said
    assert said.count("components") == 2
    short = Console(width=140, record=True, file=io.StringIO())
    short.print(report_table(samples, most=5))
    assert "3 more rows in report.json" in short.export_text()


def test_a_recipe_gives_back_the_placed_constraints_exactly(made) -> None:
    out, _, _, resolved = made
    recipe = read_recipe(out / "report.json")
    assert recipe.spec == SPEC
    for a, b in zip(constraints_in(recipe.resolved), constraints_in(resolved), strict=True):
        assert a.domains.grid == b.domains.grid
        assert a.domains.s.equal(b.domains.s)
        assert a.domains.t.equal(b.domains.t)
        assert a.selection == b.selection
        assert a.wanted.values.keys() == b.wanted.values.keys() >= {"mass"}
        assert all(a.wanted.values[key].equal(b.wanted.values[key]) for key in a.wanted.values)
        assert a.wanted.betti == b.wanted.betti
    assert recipe.arguments == Arguments(samples=3)
    assert changed_versions(recipe) == []


@pytest.mark.parametrize(
    ("at", "value", "message"),
    [
        (("arguments", "options", "batch"), None, "the argument 'batch' is missing"),
        (
            ("arguments", "options", "guidance", "solver"),
            "newton",
            "allowed: gauss-newton, gradient",
        ),
        (("arguments", "samples"), "3", "samples: Input should be a valid integer, found '3'"),
        (("arguments", "samples"), 0, "greater than or equal to 1, found 0"),
        (("arguments", "colour"), "red", "colour: Extra inputs"),
        (("model", "hash"), None, "'hash' is missing"),
        (("torch",), None, "'torch' is missing"),
        (("resolved", 0, "s"), [[1, 1]], "'wall' has numbers that do not fit 1 domains"),
        (("resolved", 0, "t"), [[0.5, 0.5, float("nan")]], "do not fit"),
        (("resolved", 0, "grid"), [900, 900, 900], "'wall' are not those of the spec"),
        (("resolved", 1, "wanted", "mass"), [0.1, 0.2], "'middle' has numbers"),
        (("resolved", 1, "reasons"), [], "'middle' has 1 domains but not as many reasons"),
        (("spec", "anatomy"), "cardiac", "unknown tissue"),
    ],
)
def test_a_recipe_that_was_changed_by_hand_is_refused(made, tmp_path, at, value, message) -> None:
    """In one sentence; None stands for a value that was taken out."""
    data = json.loads((made[0] / "report.json").read_text(encoding="utf-8"))
    *way, last = at
    place = data["recipe"]
    place.pop("checksum")  # with it any change is refused, without naming what is wrong
    for step in way:
        place = place[step]
    place[last] = value
    if value is None:
        del place[last]
    (tmp_path / "report.json").write_text(json.dumps(data))
    with pytest.raises(AnatomicaError, match=r"is not a report\.json") as refused:
        read_recipe(tmp_path / "report.json")
    assert message in str(refused.value)
    assert "\n" not in str(refused.value)


def page_of(made, *, name: str | None = None, comparisons=()) -> str:
    """report.html with another name for the first constraint, which is then also said to have no place."""
    out, samples, _, resolved = made
    recipe = json.loads((out / "report.json").read_text(encoding="utf-8"))["recipe"]
    if name is not None:
        first = samples[0]
        samples = [replace(first, checks=(replace(first.checks[0], constraint=name),))]
        d = resolved[0].domains
        nowhere = replace(d, valid=torch.zeros_like(d.valid), reasons=(f"{name} does not occur",))
        renamed = resolved[0].constraint.model_copy(update={"name": name})
        resolved = [replace(resolved[0], constraint=renamed, domains=nowhere)]
    return report_html(samples, resolved, recipe, comparisons)


def test_names_from_elsewhere_are_text_not_markup(made) -> None:
    name = "<span><script>alert(1)</script></span>"
    note = Comparison(name, note="none")
    page = page_of(made, name=name, comparisons=[*made[2], note])
    assert "<script" not in page
    text = Strict()
    text.feed(page)
    said = " ".join(text.text)
    assert (
        f"{name} could not be placed ({name} does not occur), so it was not asked for and is not met" in said
    )
    console = Console(width=140, record=True, file=io.StringIO())
    brackets = replace(made[1][0], checks=(replace(made[1][0].checks[0], constraint="[/red]wall"),))
    console.print(report_table([brackets]))
    assert "[/red]wall" in console.export_text()


def test_the_verdict_counts_compared_constraints_alone(made) -> None:
    """The wall is outside; the box in the middle cannot be compared."""
    assert "population: 1 of 1 compared constraints lie outside it" in page_of(made, comparisons=made[2])
    inside = replace(made[2][0], distance=0.1)
    assert "population: 0 of 1 compared" in page_of(made, comparisons=[inside, made[2][1]])
