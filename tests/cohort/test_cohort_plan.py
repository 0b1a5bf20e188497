"""Plans: requests as asked, the same for everybody, and bad specs refused in one sentence."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from fake_patients import MAKER, SPEC, spec
from scipy import stats

from anatomica.anatomy.catalogue import ANATOMIES
from anatomica.cohort import design
from anatomica.cohort.distributions import Distribution
from anatomica.cohort.drawing import led
from anatomica.cohort.feasible import asked
from anatomica.cohort.joint import correlated, latent_correlation, table_correlation
from anatomica.cohort.plan import Plan, make_plan, read_plan
from anatomica.cohort.spec import EXAMPLE, CohortSpec, dump_spec, parse_spec, read_spec, schema
from anatomica.errors import AnatomicaError
from anatomica.spec.asks import parse_ask

A, B = "lumen.mean_diameter_mm", "plaque_burden_pct"


def plan(text: str = SPEC, folder: Path = Path()) -> Plan:
    return make_plan(parse_spec(text), MAKER, folder)


def test_the_example_is_a_plan_and_its_words_survive() -> None:
    made = parse_spec(EXAMPLE)
    assert parse_spec(dump_spec(made)) == made
    found = make_plan(made, MAKER)
    assert np.bincount(found.strata).tolist() == [350, 150]
    assert found.values.min(0).tolist() >= [34, 1.05]
    assert np.corrcoef(found.values.T)[0, 1] == pytest.approx(0.4, abs=0.08)
    assert str(found.stratum("bovine")[0]) == "bovine >= 1"
    assert str(found.stratum("normal")[0]) == "bovine < 1"
    assert "targets" in schema()["properties"]


def test_strata_of_counts_are_led_by_contacts() -> None:
    """Every lead is an ask that is understood, of none or of at least one of the count."""
    made = make_plan(parse_spec(EXAMPLE), MAKER)
    about = ANATOMIES["aortic"]
    leads = {}
    for request in (made.request(i) for i in range(20)):
        wanted = led(request, made)
        assert wanted is not None
        leads[request.stratum] = wanted.texts[len(request.targets) :]
        assert [parse_ask(text, about).keys for text in wanted.texts]
    assert any("touch[BCT,LCCA]" in text for text in leads["bovine"])
    assert leads["normal"] == ("touch[Ao,LCCA].area_mm2 >= 30",)
    plain = make_plan(spec(), MAKER)
    assert led(plain.request(0), plain) == asked(plain.request(0))


def test_the_example_of_dilated_aortas_is_a_plan() -> None:
    given = read_spec(Path(__file__).parents[2] / "examples" / "dilated_aortas.yaml")
    made = make_plan(given, MAKER)
    assert made.size == 500
    assert np.bincount(made.strata).tolist() == [350, 150]


@pytest.mark.parametrize("kind", ["random", "sobol"])
def test_requests_have_the_asked_distribution_and_correlation(kind: str) -> None:
    made = make_plan(spec(size=2000, design=kind), MAKER)
    for i, distribution in enumerate(made.distributions):
        assert stats.kstest(made.values[:, i], distribution.cdf).statistic < 1.36 / np.sqrt(2000)
    assert np.corrcoef(made.values.T)[0, 1] == pytest.approx(-0.5, abs=0.05)


def test_a_plan_is_the_same_for_everybody_and_grows_at_its_end(tmp_path: Path) -> None:
    for kind in ("random", "sobol"):
        first = make_plan(spec(design=kind), MAKER)
        first.save(tmp_path)
        again = read_plan(tmp_path)
        more = again.grown(30)
        keys = [first.key(i) for i in range(40)]
        assert keys == [again.key(i) for i in range(40)] == [more.key(i) for i in range(40)]
        assert len({more.key(i) for i in range(70)}) == 70
        assert first.request(3) == more.request(3)
    assert make_plan(spec(seed=4), MAKER).key(0) != keys[0]


def test_a_replacement_is_another_request_of_the_same_stratum() -> None:
    made = make_plan(spec(), MAKER)
    first, second = made.request(5), made.request(5, turn=1)
    assert first.seed != second.seed
    assert first.targets != second.targets
    assert second == made.request(5, turn=1)


def test_a_grid_has_every_combination() -> None:
    targets = {A: {"uniform": [2, 4]}, B: {"choice": [20, 30, 40]}}
    made = make_plan(spec(targets=targets, design="grid", size=12), MAKER)
    assert {tuple(x) for x in made.values.round(6)} == {
        (a, b) for a in (2.25, 2.75, 3.25, 3.75) for b in (20, 30, 40)
    }
    assert len({made.key(i) for i in range(12)}) == 12
    with pytest.raises(AnatomicaError, match="needs at least 6 patients"):
        make_plan(spec(targets=targets, design="grid", size=5), MAKER)
    with pytest.raises(AnatomicaError, match="only random and sobol"):
        made.grown(1)


def test_one_at_a_time_moves_one_target_and_keeps_the_seed() -> None:
    targets = {A: {"uniform": [2, 4]}, B: {"uniform": [20, 60]}}
    made = make_plan(spec(targets=targets, design="one-at-a-time", size=11), MAKER)
    assert made.values[0].tolist() == [3, 40]
    moved = (made.values[1:] != made.values[0]).sum(1)
    assert moved.max() == 1
    assert len({made.request(i).seed for i in range(11)}) == 1


def test_strata_have_their_shares_from_the_start() -> None:
    for shares in ([0.7, 0.3], [0.1, 0.2, 0.7]):
        found = design.strata_of(1000, shares)
        for n in (20, 100, 1000):
            assert np.abs(np.bincount(found[:n], minlength=len(shares)) - n * np.array(shares)).max() < 4


def test_a_table_gives_margins_and_correlation(tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    z = rng.multivariate_normal([0, 0], [[1, 0.6], [0.6, 1]], 400)
    real = np.stack([3 + 0.3 * z[:, 0], 40 + np.exp(z[:, 1])], 1)
    rows = "\n".join(f"p{i},{a},{b}" for i, (a, b) in enumerate(real.tolist()))
    (tmp_path / "p.csv").write_text(f"name,{A},{B}\n{rows}\n")
    made = make_plan(spec(targets={"from": "p.csv"}, size=2000), MAKER, tmp_path)
    assert made.keys == (A, B)
    ranks = [stats.spearmanr(x)[0] for x in (real, made.values)]
    assert ranks[0] == pytest.approx(ranks[1], abs=0.06)
    for i in range(2):
        found: Any = stats.ks_2samp(made.values[:, i], real[:, i])
        assert found.statistic < 0.06
    assert table_correlation(real)[0, 1] == pytest.approx(0.6, abs=0.08)


def test_the_latent_correlation_of_normals_is_the_asked_one() -> None:
    normal, uniform = Distribution(normal=(0, 1)), Distribution(uniform=(0, 1))
    assert latent_correlation("ab", [normal, normal], {("a", "b"): 0.5})[0, 1] == pytest.approx(0.5, abs=5e-3)
    # Of two uniforms the Pearson correlation is 6/pi asin(rho/2).
    rho = latent_correlation("ab", [uniform, uniform], {("a", "b"): 0.5})[0, 1]
    assert 6 / np.pi * np.arcsin(rho / 2) == pytest.approx(0.5, abs=5e-3)
    u = design.sobol_rows(4096, 2, 0)
    latent = np.array([[1, rho], [rho, 1]])
    assert np.corrcoef(correlated(u, latent).T)[0, 1] == pytest.approx(0.5, abs=0.01)


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"targets": {"lumen.diameter": {"normal": [1, 1]}}}, "unknown quantity 'lumen.diameter'"),
        ({"targets": {"calcium.count": {"choice": [1, 2]}}}, "a count cannot be led"),
        (
            {"targets": {A: 3, "correlations": {f"{A}, {B}": 0.5}}},
            "plaque_burden_pct is not among the targets",
        ),
        ({"targets": {A: 3, B: {"uniform": [1, 2]}, "correlations": {f"{A}, {B}": 0.5}}}, "only one value"),
        ({"targets": {A: {"uniform": [2, 4]}, "correlations": {A: 0.5}}}, "not a pair"),
        (
            {"targets": {A: 3, B: 40, "correlations": {f"{A}, {B}": 0.5, f"{B}, {A}": -0.5}}},
            "is given twice",
        ),
        (
            {"targets": {A: {"choice": [2, 4]}, B: {"normal": [40, 5]}, "correlations": {f"{A}, {B}": 0.95}}},
            "between -0.80 and 0.80",
        ),
        ({"include": ["valid", f"{A} < 2.5"]}, "truncate the target"),
        ({"include": [f"{A} > 5"]}, "none of the requests"),
        ({"include": ["vessel.area_mm2 < 5", "vessel.area_mm2 > 6"]}, "no patient can meet"),
        ({"include": ["vessel.area_mm2 about 5"]}, "is no condition"),
        ({"strata": {"normal": 0.5, "stenosed": 0.5}}, "the stratum 'stenosed' is not known"),
        ({"targets": {"from": "none.csv"}}, "does not exist"),
        ({"anatomy": "cardia"}, "cardia"),
        ({"design": "grid"}, "has no correlations"),
        ({"design": "grid", "targets": {}}, "needs targets"),
    ],
)
def test_bad_specs_get_a_sentence(change: dict, words: str) -> None:
    with pytest.raises(AnatomicaError, match=words):
        make_plan(spec(**change), MAKER)


def test_impossible_correlations_of_three_are_refused() -> None:
    c = "vessel.area_mm2"
    targets = {x: {"normal": [30, 1]} for x in (A, B, c)}
    targets["correlations"] = {f"{A}, {B}": 0.9, f"{A}, {c}": 0.9, f"{B}, {c}": -0.9}  # type: ignore[assignment]
    with pytest.raises(AnatomicaError, match="no distribution has these correlations together"):
        make_plan(spec(targets=targets), MAKER)


@pytest.mark.parametrize(
    ("head", "columns", "words"),
    [
        (f"{A},{B},{A}", None, f"has 2 columns '{A}'"),
        (f"{A},{B},x", [A, B, A], f"name {A} twice"),
    ],
)
def test_a_column_is_named_once(head: str, columns: list[str] | None, words: str, tmp_path: Path) -> None:
    (tmp_path / "t.csv").write_text(head + "\n" + "".join(f"{3 + i / 9},{40 + i},1\n" for i in range(9)))
    with pytest.raises(AnatomicaError, match=words):
        make_plan(spec(targets={"from": {"csv": "t.csv", "columns": columns}}), MAKER, tmp_path)


def test_a_cohort_does_not_grow_without_end() -> None:
    with pytest.raises(AnatomicaError, match="at most 1000000 patients"):
        make_plan(spec(), MAKER).grown(10**20)


@pytest.mark.parametrize(
    ("line", "words"),
    [
        ("sizes: 3", "sizes: unknown field .did you mean 'size'"),
        ("size: true", "size: a number is wanted, found true"),
        ("size: 0", "size: input should be greater than or equal to 1, found 0"),
        ("strata: {normal: 0.7, calcium.count: 0.2}", "add up to 0.9"),
        ("privacy: {nearest_training: p80}", "p0 to p50"),
        (
            "design: latin",
            "design: input should be 'random', 'sobol', 'grid' or 'one-at-a-time', found 'latin'",
        ),
        ("name: a/b", "name: string should match pattern"),
        ("targets: {lumen.mean_diameter_mm: {normal: [1, 2], truncate: [9, 8]}}", "ends before it begins"),
    ],
)
def test_bad_yaml_gets_a_sentence(line: str, words: str) -> None:
    given = {
        k: v
        for k, v in (("name", "a"), ("anatomy", "coronary"), ("size", "4"))
        if not line.startswith(f"{k}:")
    }
    text = "\n".join([*(f"{k}: {v}" for k, v in given.items()), line])
    with pytest.raises(AnatomicaError, match=words):
        parse_spec(text)


def test_keys_of_brackets_survive_in_pairs() -> None:
    text = "name: a\nanatomy: spinal\nsize: 9\ntargets:\n  cobb_deg[T5,T12]: {normal: [35, 5]}\n"
    text += "  lordosis_deg: {normal: [45, 5]}\n  correlations: {[cobb_deg[T5,T12], lordosis_deg]: 0.3}\n"
    made = parse_spec(text)
    assert made.targets.pairs == {("cobb_deg[T5,T12]", "lordosis_deg"): 0.3}
    assert isinstance(made, CohortSpec)
