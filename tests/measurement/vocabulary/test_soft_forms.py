"""Every quantity of the vocabulary: its soft form is near its hard form, and its derivative is right."""

from functools import cache

import numpy as np
import pytest
import torch
from scipy import ndimage
from torch import Tensor

from anatomica.anatomy.catalogue import ANATOMIES
from anatomica.data.phantoms import phantom
from anatomica.measurement.vocabulary.plan import Missing, Piece, Plan
from anatomica.measurement.vocabulary.statistics import plan
from anatomica.measurement.vocabulary.subject import Subject
from anatomica.spec.vocabulary import entries, lookup
from anatomica.spec.vocabulary_tables import Entry

N = 96
SEEDS = {
    "cardiac": (100_001,),
    "aortic": (100_001, 100_000),
    "spinal": (100_009, 100_003, 100_000),
    "coronary": (100_000,),
}
"""Phantoms that between them have nearly all quantities: a bovine arch, thoracic and lumbar windows."""
BRACKETS = {
    "cardiac": (
        "touch[LV,LA].area_mm2",
        "uncovered[Myo,LV].area_mm2",
        "outside[LA,0,200,-200,200,-200,200].volume_ml",
    ),
    "spinal": ("cobb_deg[T1,T3]", "cobb_coronal_deg[T1,T3]"),
}
RELATIONS = ("touch", "uncovered", "outside")
"""Faces of voxels: their soft forms are theirs only where the field is certain up to the border."""
FEWEST = {"cardiac": 40, "aortic": 40, "spinal": 60, "coronary": 10}
"""Quantities with a soft form that must have been looked at: the tests cannot pass by finding none."""


@cache
def subject(anatomy: str, seed: int, coarse: int = 1) -> Subject:
    about = ANATOMIES[anatomy]
    return Subject(phantom(anatomy, seed, N).label_map, about, coarse=coarse)


@cache
def placed(anatomy: str) -> list[tuple[Entry, Subject, Plan]]:
    """Every quantity that one of the phantoms has, with its plan on the first that has it."""
    about, found = ANATOMIES[anatomy], {}
    keys = [*(e.key for e in entries(anatomy)), *BRACKETS.get(anatomy, ())]
    for seed in SEEDS[anatomy]:
        s = subject(anatomy, seed)
        for key in keys:
            if key in found:
                continue
            try:
                found[key] = (lookup(about, key), s, plan(s, key))
            except Missing:
                continue
    return [x for x in found.values() if not x[0].count and x[2].pieces]


@cache
def probability(s: Subject, tissues: tuple[str, ...]) -> Tensor:
    """How likely tissues are at the voxels of a field that is certain but for a voxel around the border."""
    mask = s.mask(*tissues)
    outside, inside = (np.asarray(ndimage.distance_transform_edt(x)) for x in (~mask, mask))
    away = outside - inside
    return torch.from_numpy(1 / (1 + np.exp(np.clip(3.0 * away, -30, 30))))


def soft(s: Subject, piece: Piece) -> Tensor:
    at = (piece.points_mm / s.voxel_mm - 0.5).T
    S = ndimage.map_coordinates(probability(s, piece.tissues).numpy(), at, order=1, mode="constant")
    return torch.from_numpy(np.asarray(S))


def allowed(entry: Entry, value: float, s: Subject) -> float:
    """The tolerance of an ask, which is made for the paper's grid; this one is coarser."""
    most = entry.tolerance * (abs(value) / 100 if entry.tolerance_unit == "%" else 1.0)
    return most * max(128 / s.n, 1.0)


@pytest.mark.parametrize("anatomy", list(ANATOMIES))
def test_soft_forms_agree_with_hard_ones(anatomy: str) -> None:
    found = placed(anatomy)
    assert len(found) >= FEWEST[anatomy]
    apart = {}
    for entry, s, one in found:
        if entry.key.startswith(RELATIONS):
            continue
        hard = s.hard(one)
        value = float(one.value([soft(s, piece) for piece in one.pieces]))
        off = abs(value - hard) / allowed(entry, hard, s)
        if off > 1:
            apart[entry.key] = (round(hard, 3), round(value, 3), round(off, 2))
    assert not apart


@pytest.mark.parametrize("anatomy", list(ANATOMIES))
def test_slopes_are_those_of_finite_differences(anatomy: str) -> None:
    random = torch.Generator().manual_seed(3)
    step, wrong, flat = 1e-6, {}, []
    for entry, s, one in placed(anatomy):
        samples = [soft(s, piece).clamp(0.02, 0.98) for piece in one.pieces]
        samples = [x + 0.01 * torch.rand(x.shape, generator=random, dtype=x.dtype) for x in samples]
        ways = [torch.randn(x.shape, generator=random, dtype=x.dtype) for x in samples]
        leaves = [x.clone().requires_grad_() for x in samples]
        slopes = torch.autograd.grad(one.value(leaves), leaves, allow_unused=True)
        along = sum(float((g * w).sum()) for g, w in zip(slopes, ways, strict=True) if g is not None)
        ahead, behind = (
            float(one.value([x + sign * step * w for x, w in zip(samples, ways, strict=True)]))
            for sign in (1, -1)
        )
        numeric = (ahead - behind) / (2 * step)
        scale = sum(float(g.abs().sum()) for g in slopes if g is not None)
        if scale == 0:
            flat.append(entry.key)
        if abs(along - numeric) > 1e-5 * scale + 1e-7:
            wrong[entry.key] = (along, numeric, scale)
    assert not wrong
    assert not flat


@pytest.mark.parametrize("anatomy", list(ANATOMIES))
def test_more_tissue_moves_the_value(anatomy: str) -> None:
    """Volumes, areas, diameters and thicknesses grow where their tissue grows."""
    for entry, s, one in placed(anatomy):
        if entry.unit not in ("mL", "g", "mm2", "mm3") or "canal" in entry.key or "[" in entry.key:
            continue
        samples = [s.parse(piece) for piece in one.pieces]
        more = [(x + 0.1).clamp_max(1.0) for x in samples]
        assert float(one.value(more)) > float(one.value(samples)), entry.key


@pytest.mark.parametrize("anatomy", list(ANATOMIES))
def test_every_key_has_a_plan(anatomy: str) -> None:
    from anatomica.measurement.vocabulary.statistics import PLANS

    assert set(PLANS[anatomy]) == {e.key for e in entries(anatomy)}


def test_angles_of_end_plates_were_looked_at() -> None:
    assert any(entry.key.startswith("cobb_deg") for entry, _, _ in placed("spinal"))
