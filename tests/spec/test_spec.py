import json
from dataclasses import replace

import pytest
import yaml
from pydantic import ValidationError

from anatomica.anatomy.catalogue import anatomy
from anatomica.errors import AnatomicaError
from anatomica.spec.quantities import Target
from anatomica.spec.spec import CartesianDomain, CurvilinearDomain, Spec, SphericalDomain
from anatomica.spec.tasks import TASKS, task
from anatomica.spec.yaml import dump_spec, load_spec, parse_spec

GOOD = """\
name: small heart
anatomy: cardiac
constraints:
  - name: ventricle
    structure: [LV]
    domain: {family: cartesian, grid: [16, 16, 16]}
    target: {volume_ml: 140}
"""


@pytest.mark.parametrize("name", TASKS)
def test_every_task_survives_yaml(name: str) -> None:
    assert parse_spec(dump_spec(task(name))) == task(name)


def test_the_papers_numbers() -> None:
    """Spot checks against the paper's task tables."""
    assert len(TASKS) == 16
    rv = task("right-ventricle").constraints[0]
    assert (rv.domain.family, rv.domain.grid, rv.mass_threshold) == ("cartesian", (64, 64, 64), 1e-5)
    assert (rv.weights.mass, rv.weights.centroid, rv.weights.covariance) == (1e7, 1e5, 1e4)
    mitral = task("mitral-valve").constraints
    assert [c.structure for c in mitral] == [["LV"], ["LA"]]
    assert [c.domain.grid for c in mitral] == [(4, 32, 32)] * 2
    assert (mitral[0].weights.centroid, mitral[0].mass_threshold) == (1e6, 1e-4)
    trunk, wall = (task(name).constraints[0].domain for name in ("aortic-trunk", "myocardium-wall"))
    assert isinstance(trunk, CurvilinearDomain)
    assert isinstance(wall, SphericalDomain)
    assert (trunk.planes, wall.rays) == (5, 4)
    for name, prior, weight in (
        ("atrial-separation", (2, 0, 0), 5),
        ("branch-connectivity", (1, 0, 0), 1),
        ("vertebrae-connectivity", (1, 9, 0), 5),
        ("calcium-count", (2, 0, 0), 50),
    ):
        c = task(name).constraints[0]
        assert c.target.betti is not None
        assert c.target.betti.numbers == prior
        assert (c.weights.topological, c.temperature) == (weight, 4)
    grids = [task(f"multiscale-vessel-{size}").constraints[0].domain.grid for size in ("small", "large")]
    assert grids == [(4, 4, 32), (16, 16, 32)]
    thick = task("multiscale-aorta-large").constraints[0].domain.grid
    assert thick == (16, 16, 16), "a thick slab is sampled across its thickness"


def test_schema_describes_specs() -> None:
    schema = Spec.model_json_schema()
    assert {"name", "anatomy", "constraints"} <= set(schema["properties"])
    json.dumps(schema)


@pytest.mark.parametrize(
    ("change", "expected"),
    [
        (("[LV]", "[LX]"), "line 5 .*unknown tissue 'LX'; allowed: Myo, LA"),
        (("[LV]", "[left_ventricel]"), "line 5 .*'left_ventricel' .did you mean LV, left ventricle"),
        (("grid:", "gird:"), "line 6 .*unknown field 'gird' .did you mean 'grid'.*allowed: .*around"),
        (("anatomy: cardiac", "anatomy: heart.yaml"), "line 2 .*'heart.yaml'"),
        (("anatomy: cardiac", "anatomy: 7"), "line 2 .*valid string"),
        (("volume_ml: 140", "volume_ml: large"), "line 7 .*valid number.*found 'large'"),
        (("volume_ml: 140", "volume_ml: 140, mass: 0.1"), "line 7 .*volume_ml or mass, not both"),
        (("family: cartesian", "family: circle"), "line 6 .*'circle'.*'cartesian'"),
        (("[16, 16, 16]", "[16, 16, 0]"), "line 6 .*greater than or equal to 1"),
        (("constraints:", "constraints: ["), "not readable as YAML"),
        (("    target: {volume_ml: 140}", "    tolerence: {}"), "line 7 .*did you mean 'tolerance'"),
    ],
)
def test_mistakes_are_one_sentence_with_the_line(change: tuple[str, str], expected: str) -> None:
    with pytest.raises(AnatomicaError, match=expected) as raised:
        parse_spec(GOOD.replace(*change), "heart.yaml")
    assert "\n" not in str(raised.value)


def test_a_missing_file_and_a_list_are_said_so(tmp_path) -> None:
    with pytest.raises(AnatomicaError, match="does not exist"):
        load_spec(tmp_path / "none.yaml")
    with pytest.raises(AnatomicaError, match="a spec is a mapping"):
        parse_spec("- 1\n- 2\n")


def test_targets_are_checked() -> None:
    with pytest.raises(ValidationError, match="rotation_deg turns axes_mm"):
        Target(rotation_deg=(0, 0, 1))
    assert yaml.safe_load(dump_spec(parse_spec(GOOD)))["constraints"][0]["target"] == {"volume_ml": 140.0}


def test_any_name_of_a_tissue_becomes_its_short_name_at_once() -> None:
    text = GOOD.replace("[LV]", "[heart_ventricle_left, Left-Ventricle, rv]").replace(
        "16]}", "16], around: [left atrium]}"
    )
    (found,) = parse_spec(text).constraints
    assert found.structure == ["LV", "RV"]
    assert isinstance(found.domain, CartesianDomain)
    assert found.domain.around == ["LA"]
    assert "heart_ventricle_left" not in dump_spec(parse_spec(text))


def test_a_users_anatomy_is_checked_when_the_spec_meets_it() -> None:
    own = parse_spec(GOOD.replace("anatomy: cardiac", "anatomy: my-heart"))
    assert own.of(replace(anatomy("cardiac"), name="my-heart")).constraints[0].structure == ["LV"]
    with pytest.raises(AnatomicaError, match="spec 'small heart': unknown tissue 'LV'"):
        own.of(replace(anatomy("spinal"), name="my-heart"))
    with pytest.raises(AnatomicaError, match="about my-heart anatomy, not about cardiac"):
        own.of(anatomy("cardiac"))
