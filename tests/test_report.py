"""Reports: report.json complete, report.html one valid file with every sample and nothing from elsewhere."""

import base64
import io
import json
import re
from html.parser import HTMLParser

import pytest
from PIL import Image
from rich.console import Console

from anatomica.feasibility import compare
from anatomica.generation import generate, resolve_for
from anatomica.models.zoo import load_model
from anatomica.recipe import make_recipe, read_recipe
from anatomica.report import population_table, report_table, write_report
from anatomica.solvers import Guidance
from anatomica.spec_yaml import parse_spec
from tiny_prior import save_tiny_model

SPEC = parse_spec(
    "name: giant <wall> & sons\nanatomy: coronary\nconstraints:\n"
    "- {name: wall, structure: [Ve], domain: {family: global, grid: [8, 8, 8]},"
    " target: {volume_ml: 1900, centroid_mm: [0, 0, 0], betti: {b0: 1}}}\n"
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
    samples = generate(model, SPEC, seeds=SEEDS, steps=3, curves=True, guidance=Guidance(polish=0))
    comparisons = compare(model, resolved)
    recipe = make_recipe(model, SPEC, resolved, {"samples": 3})
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
    assert "http" not in page
    # A picture a sample, inside the file and readable; two charts of curves and a persistence diagram.
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
    assert first["features"][0]["wanted"] == [1, None, None]
    wall, middle = data["population"]
    assert wall["outside"]
    assert wall["nearest"]["volume_ml"] < 1900
    assert "box domain" in middle["note"]
    assert data["not_placed"] == []
    assert (out / "sample-000005.png").is_file()


def test_tables_say_units_and_the_nearest_target(made) -> None:
    _, samples, comparisons, _ = made
    console = Console(width=140, record=True, file=io.StringIO())
    console.print(population_table(comparisons))
    console.print(report_table(samples))
    said = console.export_text()
    assert re.search(r"wall +│ volume +│ +1900 mL", said)
    assert "tried all the same" in said
    assert said.count("components") == 2
    short = Console(width=140, record=True, file=io.StringIO())
    short.print(report_table(samples, most=5))
    assert "3 more rows in report.json" in short.export_text()


def test_a_recipe_gives_back_the_placed_constraints_exactly(made) -> None:
    out, _, _, resolved = made
    recipe = read_recipe(out / "report.json")
    assert recipe.spec == SPEC
    for a, b in zip(recipe.resolved, resolved, strict=True):
        assert a.domains.grid == b.domains.grid
        assert a.domains.s.equal(b.domains.s)
        assert a.domains.t.equal(b.domains.t)
        assert a.selection == b.selection
        assert a.wanted.mass is not None
        assert b.wanted.mass is not None
        assert a.wanted.mass.equal(b.wanted.mass)
        assert a.wanted.betti == b.wanted.betti
