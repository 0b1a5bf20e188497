"""Documents name code that exists, and their links lead somewhere."""

import ast
import dataclasses
import importlib
import re
from functools import cache
from pathlib import Path

import pytest

import anatomica
from anatomica.spec.quantities import BY_KEY, Quantity

ROOT = Path(__file__).parent.parent
PACKAGE = Path(anatomica.__file__).parent
ROOMS = sorted(p.parent.name for p in PACKAGE.glob("*/__init__.py"))
PAGES = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *sorted((ROOT / "docs").glob("*.md"))]
NAMED = re.compile(rf"`(?:anatomica\.)?((?:{'|'.join(ROOMS)})(?:\.\w+)+)`(?:\]\(([^)]+)\))?")


def resolve(name: str) -> tuple[str, object]:
    """The module of a dotted name, and what the name is there."""
    parts = name.split(".")
    for i in range(len(parts), 0, -1):
        path = PACKAGE.joinpath(*parts[:i])
        if path.with_suffix(".py").is_file() or (path / "__init__.py").is_file():
            found: object = importlib.import_module(".".join(["anatomica", *parts[:i]]))
            for attribute in parts[i:]:
                found = getattr(found, attribute)
            return ".".join(parts[:i]), found
    raise AssertionError(f"no module for {name}")


@cache
def anchors(page: Path) -> set[str]:
    """The anchors of a page's headings, as GitHub makes them."""
    titles = re.findall(r"^#+ (.+)$", page.read_text(encoding="utf-8"), re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", title.lower()).replace(" ", "-") for title in titles}


@pytest.mark.parametrize("page", PAGES, ids=lambda p: p.name)
def test_every_name_exists(page: Path) -> None:
    for name, target in NAMED.findall(page.read_text(encoding="utf-8")):
        if name.endswith((".json", ".html", ".png", ".csv", ".md", ".yaml")):
            continue
        try:
            module, _ = resolve(name)
        except (AttributeError, AssertionError) as error:
            raise AssertionError(f"{page.name} names `{name}`: {error}") from None
        if target:
            assert (
                page.parent / target
            ).resolve() == ROOT / "src/anatomica" / f"{module.replace('.', '/')}.py"


@pytest.mark.parametrize("page", PAGES, ids=lambda p: p.name)
def test_every_link_leads_somewhere(page: Path) -> None:
    text = re.sub(r"```.*?```", "", page.read_text(encoding="utf-8"), flags=re.DOTALL)
    for target in re.findall(r"\]\(([^)\s]+)\)", text):
        if "://" in target:
            continue
        path, _, anchor = target.partition("#")
        file = (page.parent / path).resolve() if path else page
        assert file.exists(), f"{page.name} links to {target}"
        assert not anchor or anchor in anchors(file), f"{page.name} links to {target}"


@pytest.mark.parametrize("page", PAGES, ids=lambda p: p.name)
def test_python_files_in_prose_exist(page: Path) -> None:
    """`spec/quantities.py` is a file of the package, `tests/spec/test_spec.py` one of the repository."""
    for name in re.findall(
        r"`((?:[a-z_]+/)+[a-z_]+\.(?:py|hpp|cpp|yaml))`", page.read_text(encoding="utf-8")
    ):
        assert (PACKAGE / name).is_file() or (ROOT / name).is_file(), f"{page.name} names `{name}`"


def test_all_rooms_and_all_algorithms_are_on_the_page() -> None:
    text = (ROOT / "docs" / "architecture.md").read_text(encoding="utf-8")
    assert set(re.findall(r"^\| `(\w+)/` \|", text, re.MULTILINE)) == set(ROOMS)
    # Docstrings cite the paper's algorithms by name; a function that does is on the page.
    cited = []
    for file in PACKAGE.rglob("*.py"):
        module = ".".join(file.relative_to(PACKAGE).with_suffix("").parts)
        functions = (n for n in ast.parse(file.read_text("utf-8")).body if isinstance(n, ast.FunctionDef))
        documented = ((f.name, ast.get_docstring(f) or "") for f in functions)
        cited += [f"{module}.{name}" for name, doc in documented if doc.startswith("Algorithm ")]
    assert len(cited) >= 12
    assert [name for name in cited if f"`{name}`" not in text] == []


def test_the_example_of_a_quantity_is_a_row_of_the_table() -> None:
    text = (ROOT / "docs" / "extending.md").read_text(encoding="utf-8")
    (example,) = re.findall(r"```python\nROW = (Quantity\(.*?\n\))\n```", text, re.DOTALL)
    call = ast.parse(example, mode="eval").body
    assert isinstance(call, ast.Call)
    given = {str(k.arg): k.value for k in call.keywords}
    assert set(given) <= {field.name for field in dataclasses.fields(Quantity)}
    row = BY_KEY[ast.literal_eval(given["key"])]
    for name in ("title", "unit", "error_unit", "tolerance", "shape", "any_mass", "matched", "whole"):
        assert getattr(row, name) == ast.literal_eval(given[name]), name
