"""Layouts: drawn in the patients' proportions, nobody's copy, the same for a seed in any batch."""

from dataclasses import replace
from pathlib import Path

import pytest
import torch

from anatomica.errors import AnatomicaError
from anatomica.generation.draw import generate
from anatomica.generation.options import Options
from anatomica.prior.layouts import KIN, Layouts, fit_layouts
from anatomica.prior.sampler import RESTART, karras_schedule
from anatomica.prior.training.latents import layouts_of
from anatomica.prior.zoo import LAYOUTS, load_model, set_layouts
from tiny_prior import ellipsoids, save_tiny_model

SHAPE = (3, 4, 4, 4)


def kinds(rare: int = 20, frequent: int = 60) -> torch.Tensor:
    """Latents of two kinds of patients, far apart."""
    generator = torch.Generator().manual_seed(0)
    latents = torch.randn(rare + frequent, *SHAPE, generator=generator)
    latents[:rare] += 20
    return latents


def test_with_all_components_nothing_is_lost() -> None:
    latents = kinds()[:30]
    found = fit_layouts(latents, rank=64)
    assert found.basis.shape == (30, *SHAPE)
    again = found.mean + torch.tensordot(found.patients, found.basis, dims=1)
    nearest = torch.cdist(again.flatten(1), latents.flatten(1)).argmin(1)
    assert sorted(nearest.tolist()) == list(range(30))
    torch.testing.assert_close(again, latents[nearest], atol=1e-3, rtol=0)


def test_the_first_components_are_the_widest() -> None:
    found = fit_layouts(kinds(), rank=5)
    spread = found.patients.std(0)
    assert (spread[:-1] >= spread[1:]).all()
    assert spread[0] > 5 * spread[1]


@pytest.mark.parametrize("first", [0, 100, 12345])
def test_seeds_in_a_row_have_every_kind_in_its_share(first: int) -> None:
    drawn = fit_layouts(kinds()).draw(range(first, first + 40))
    assert abs(int((drawn.mean((1, 2, 3, 4)) > 10).sum()) - 10) <= 1


def test_a_layout_is_like_its_kind_and_nobodys_copy() -> None:
    latents = kinds()
    drawn = fit_layouts(latents, rank=64).draw(range(60))
    distance = torch.cdist(drawn.flatten(1), latents.flatten(1))
    apart = torch.cdist(latents.flatten(1), latents.flatten(1))
    of_patients = apart.kthvalue(2, dim=1).values.mean()
    assert distance.amin(1).min() > 0.2 * of_patients
    assert distance.amin(1).max() < 1.5 * of_patients


def test_few_patients_are_each_others_kin() -> None:
    assert fit_layouts(kinds()[: KIN - 2]).draw([3]).isfinite().all()
    one = kinds()[:1]
    torch.testing.assert_close(fit_layouts(one).draw([3]), one)


def test_a_seed_has_one_layout() -> None:
    found = fit_layouts(kinds())
    torch.testing.assert_close(found.draw([7, 8, 9])[1:2], found.draw([8]))


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    folder = save_tiny_model(tmp_path / "model")
    model = load_model(folder)
    set_layouts(folder, layouts_of(ellipsoids(6), model.autoencoder, model.scaler))
    return folder


def test_a_folder_keeps_them(folder: Path) -> None:
    model = load_model(folder)
    assert model.layouts is not None
    assert model.layouts_hash is not None
    direct = layouts_of(ellipsoids(6), model.autoencoder, model.scaler)
    torch.testing.assert_close(model.layouts.draw([1, 2]), direct.draw([1, 2]), atol=0.02, rtol=0)
    set_layouts(folder, None)
    bare = load_model(folder)
    assert bare.layouts is None
    assert bare.layouts_hash is None
    assert not (folder / LAYOUTS).exists()
    assert bare.hash == model.hash


def test_damaged_layouts_are_refused(folder: Path) -> None:
    (folder / LAYOUTS).write_bytes(b"x" * 100)
    with pytest.raises(AnatomicaError, match=r"layouts\.safetensors is damaged"):
        load_model(folder)


def test_layouts_of_another_model_are_refused(folder: Path) -> None:
    set_layouts(folder, fit_layouts(torch.randn(4, 3, 8, 8, 8)))
    with pytest.raises(AnatomicaError, match="holds no layouts of this model's latents"):
        load_model(folder)
    set_layouts(folder, fit_layouts(torch.randn(4, *SHAPE)))
    assert load_model(folder).layouts is not None


def test_unconditional_samples_begin_in_them(folder: Path) -> None:
    """At the level `RESTART`, in the seed's layout with noise; the tries after the first as well."""
    model = load_model(folder)
    steps = 12
    seen = []
    twice = Options(steps=steps, tries=2)
    generate(model, seeds=[4], options=twice, callback=lambda progress: seen.append(progress.step))
    config = model.sampling
    levels = karras_schedule(steps, config.sigma_min, config.sigma_max, config.rho)
    assert seen[0].count == (levels <= RESTART).sum() - 1
    assert seen[0].sigma <= RESTART
    layout = model.layout([4])
    assert layout is not None
    noise = torch.randn(layout.shape[1:], generator=torch.Generator().manual_seed(4))
    torch.testing.assert_close(seen[0].z[0], layout[0] + seen[0].sigma * noise)
    (anew,) = generate(replace(model, layouts=None), seeds=[4], options=Options(steps=steps, tries=1))
    assert anew.drawn == 1


def test_layouts_travel_as_half_precision() -> None:
    found = fit_layouts(kinds())
    kept = found.to_tensors()
    assert {value.dtype for value in kept.values()} == {torch.float16}
    again = Layouts(**{k: v.float() for k, v in kept.items()})
    torch.testing.assert_close(again.draw([5]), found.draw([5]), atol=0.1, rtol=0)
