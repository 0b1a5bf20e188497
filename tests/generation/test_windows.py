"""What is asked of vertebrae begins in a scout that shows them."""

from pathlib import Path

import numpy as np
import pytest
import torch

from anatomica.anatomy.catalogue import ANATOMIES
from anatomica.anatomy.frame import Frame
from anatomica.anatomy.label_map import LabelMap
from anatomica.generation import windows
from anatomica.generation.windows import View, asked_view, begin_in_view, in_order, share_shown
from anatomica.measurement.goals import Goal, resolve_asks
from anatomica.measurement.placing import resolve
from anatomica.measurement.vocabulary.subject import Subject
from anatomica.prior.zoo import Model, load_model
from anatomica.spec.asks import parse_ask
from anatomica.spec.yaml import parse_spec
from tiny_prior import save_tiny_model

SPINE = ANATOMIES["spinal"]
N = 32


def goals(*texts: str) -> tuple[Goal, ...]:
    asks = [parse_ask(text, SPINE) for text in texts]
    return resolve_asks(asks, SPINE, None, False, lambda key, percent: 0.0)


def column(top: int) -> np.ndarray:
    """Four vertebrae as slabs of eight voxels, from number `top` down; the outer two reach the border."""
    assert top + 4 <= len(SPINE.table)
    array = np.zeros((N, N, N), np.uint8)
    for k in range(4):
        array[10:20, 10:20, N - 8 * (k + 1) : N - 8 * k] = top + k
    return array


def spine(top: int) -> Subject:
    return Subject(LabelMap(column(top), Frame.model(SPINE, N).affine, SPINE.table), SPINE)


@pytest.mark.parametrize(
    ("text", "names"),
    [
        ("L3.volume_ml = 45", ("L3",)),
        ("disc.T12-L1.height_mm >= 5", ("T12", "L1")),
        ("cobb_deg[T5,T8] <= 40", ("T5", "T6", "T7", "T8")),
        ("canal.C4.area_mm2 = 300", ("C4",)),
        ("L2.wedge_ratio >= L1.wedge_ratio", ("L1", "L2")),
    ],
)
def test_an_ask_names_what_must_be_shown(text: str, names: tuple[str, ...]) -> None:
    assert asked_view(goals(text), SPINE.table.tissues) == View(names, ())


def test_a_curve_needs_bodies_of_its_region() -> None:
    assert asked_view(goals("lordosis_deg = 30"), SPINE.table.tissues) == View((), (("L", 3),))


def test_what_is_cut_off_is_not_shown() -> None:
    top = SPINE.table.id_of("L1")
    assert share_shown(spine(top), View(("L2", "L3"), ())) == 1
    assert share_shown(spine(top), View(("L1", "L2"), ())) == 0.5
    assert share_shown(spine(top), View(("T5",), ())) == 0
    assert share_shown(spine(top), View((), (("L", 3),))) == pytest.approx(2 / 3)


FIRST = SPINE.table.id_of("T1")


def window(top: int, model: Model) -> torch.Tensor:
    """A scout of these tests: its first number counts from T1 down to the uppermost vertebra."""
    z = torch.zeros(1, *model.latent_shape)
    z[0, 0, 0, 0, 0] = float(top - FIRST)
    return z


def top_of(z: torch.Tensor) -> int:
    return FIRST + round(float(z.flatten()[0]))


@pytest.fixture
def model(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Model:
    """A model of a column; its scouts are windows from T1 to L2 on by their seeds, and decoded as such."""
    tiny = load_model(save_tiny_model(tmp_path / "model", "spinal"))
    object.__setattr__(tiny.autoencoder.config, "column", True)

    def decoded(_field, latents, _n):
        tops = [top_of(z) for z in tiny.scaler.standardise(latents)]
        return torch.stack([torch.from_numpy(column(top)) for top in tops])

    monkeypatch.setattr(windows, "decode_labels", decoded)
    monkeypatch.setattr(windows, "scout", lambda model, seed, _steps: window(FIRST + seed % 14, model))
    return tiny


def scouts(tops: list[int], looked: list[int]):
    """Scouts with these uppermost vertebrae, one after another; `looked` keeps their seeds."""

    def scouted(model: Model, seed: int, _steps: int) -> torch.Tensor:
        looked.append(seed)
        return window(tops[(len(looked) - 1) % len(tops)], model)

    return scouted


def test_guided_spines_begin_where_the_vertebra_is(model: Model) -> None:
    asked = [goals("L3.volume_ml = 45"), goals("T4.volume_ml = 15"), ()]
    begin = begin_in_view(model, [1, 2, 5], asked)
    assert begin is not None
    for z, name in zip(begin, ("L3", "T4"), strict=False):
        assert share_shown(spine(top_of(z)), View((name,), ())) == 1
    assert top_of(begin[2]) == FIRST + 5  # nothing is asked of it: its own first scout
    alone = begin_in_view(model, [2], asked[1:2])
    assert alone is not None
    assert torch.equal(begin[1:2], alone)


def test_other_asks_begin_in_noise(model: Model) -> None:
    assert begin_in_view(model, [1], [()]) is None
    object.__setattr__(model.autoencoder.config, "column", False)
    assert begin_in_view(model, [1], [goals("L3.volume_ml = 45")]) is None


def test_scouts_are_looked_at_until_one_shows_the_vertebra(
    model: Model, monkeypatch: pytest.MonkeyPatch
) -> None:
    looked: list[int] = []
    monkeypatch.setattr(windows, "scout", scouts([FIRST + k for k in range(14)], looked))
    begin = begin_in_view(model, [7], [goals("T9.volume_ml = 25")])
    assert begin is not None
    top = top_of(begin[0])
    assert share_shown(spine(top), View(("T9",), ())) == 1
    assert len(set(looked)) == len(looked) == top - FIRST + 1


def test_where_no_scout_shows_all_the_one_that_shows_most_is_taken(
    model: Model, monkeypatch: pytest.MonkeyPatch
) -> None:
    looked: list[int] = []
    monkeypatch.setattr(windows, "scout", scouts([FIRST, FIRST + 7, FIRST + 3], looked))
    begin = begin_in_view(model, [7], [goals("cobb_deg[T8,T12] <= 40")])
    assert begin is not None
    assert len(looked) == windows.SAMPLED
    assert top_of(begin[0]) == FIRST + 7  # T9 and T10 whole; the others show none of the five


def test_constraints_begin_in_the_scout_that_is_nearest(
    model: Model, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Several scouts show T9 whole; the one whose T9 lies nearest to the wanted place is taken."""
    looked: list[int] = []

    def place_of_t9(z: torch.Tensor) -> float:
        there = np.argwhere(column(top_of(z)) == SPINE.table.id_of("T9"))[:, 2]
        return there.mean() / N if len(there) else 9.0

    wanted = 0.62  # of the cube, upwards: T9 is the second of four where T8 is the first
    monkeypatch.setattr(windows, "scout", scouts([FIRST + k for k in (5, 6, 7, 1, 0)], looked))
    monkeypatch.setattr(windows, "_distance", lambda _model, z, _asked: abs(place_of_t9(z[0]) - wanted))
    spec = parse_spec(
        "name: t9\nanatomy: spinal\nconstraints:\n- name: T9\n  structure: [T9]\n  match: []\n"
        "  domain: {family: global, grid: [16, 16, 16]}\n  target: {volume_ml: 20}\n"
    )
    asked = resolve(spec, Frame.model(SPINE, N))
    begin = begin_in_view(model, [7], [asked])
    assert begin is not None
    assert len(looked) == windows.COMPARED
    assert SPINE.table.names[top_of(begin[0]) + 1] == "T9"


def test_a_gap_in_the_column_is_noticed() -> None:
    s = spine(SPINE.table.id_of("L1"))
    assert in_order(s)
    array = s.cube.array.copy()
    array[array == SPINE.table.id_of("L2")] = SPINE.table.id_of("T3")
    assert not in_order(Subject(LabelMap(array, s.cube.affine, s.cube.table), SPINE))
