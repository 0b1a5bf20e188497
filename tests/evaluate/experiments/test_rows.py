"""The rows of the tables: what every method gets, and the paper's weights as they were tuned."""

from dataclasses import replace
from pathlib import Path

import pytest
import torch

from anatomica.errors import AnatomicaError
from anatomica.evaluate.experiments import paper_weights
from anatomica.evaluate.experiments.lab import Lab
from anatomica.evaluate.experiments.plan import Cell, PaperGuidance, at_scale, profile
from anatomica.evaluate.experiments.rows import (
    OURS,
    PAPER,
    PAPER_POLISHED,
    ROWS,
    TUNED,
    UNCONDITIONAL,
    WEIGHTS,
    cells_of,
    weighted,
)
from anatomica.evaluate.experiments.runner import Finished
from anatomica.generation.options import Options
from anatomica.generation.resolve import constraints_for
from anatomica.guidance.solver import Guidance
from anatomica.prior.sampler import noise_levels
from anatomica.prior.zoo import load_model
from anatomica.spec.tasks import TASKS, task
from tiny_prior import save_tiny_model


def test_every_row_is_measured_on_the_same_grid_with_one_candidate() -> None:
    here = cells_of("right-ventricle", ROWS, profile("here"))
    assert all(cell.measured == task("right-ventricle") for cell in here)
    assert all(cell.method.judged and cell.method.tries == 1 for cell in here)
    domains = [[c.domain for c in cell.spec.constraints] for cell in here]
    assert all(d == domains[0] for d in domains)
    assert {cell.method.key: cell.count for cell in here} == {
        m.key: 16 if m.key.startswith("paper") else 128 for m in ROWS
    }
    # Of each way of sampling there is a row with and one without the polish.
    polished = [bool(m.guidance and m.guidance.polish_steps) for m in ROWS]
    assert sum(polished) == len(polished) / 2


def test_the_papers_update_has_the_papers_sampler_and_ours_the_models(tmp_path: Path) -> None:
    model = load_model(save_tiny_model(tmp_path / "coronary"))
    assert OURS.sampled(model) is model
    config = PAPER.sampled(model).sampling
    assert (config.method, config.steps, config.rho, config.sigma_max) == ("stochastic", 100, 1.0, 80.0)
    assert config.s_churn > 0  # without churn it would be deterministic
    column = replace(model, autoencoder=model.autoencoder)
    column.autoencoder.config = replace(model.autoencoder.config, column=True)
    begun = PAPER.sampled(column)
    assert begun.sampling.rho == model.sampling.rho  # of the scout, and below its noise
    config = Options(**PAPER.how(None)).sampling(begun)
    assert (config.method, config.steps, config.s_churn) == ("stochastic", 100, 40.0)
    assert len(noise_levels(config, started=True)) > 50
    assert replace(PAPER, guidance=None).sampled(column).sampling == PAPER.sampling


def test_the_papers_update_is_guided_on_half_the_grid_that_is_polished(tmp_path: Path) -> None:
    model = load_model(save_tiny_model(tmp_path / "coronary"))
    spec = task("calcium-count")
    z = torch.randn(1, *model.latent_shape, generator=torch.Generator().manual_seed(0))
    sigma = torch.tensor([2.0])
    own = PaperGuidance().denoiser(model, constraints_for(model, spec))(z, sigma)
    scaled = Guidance("gradient").denoiser(model, constraints_for(model, at_scale(spec, model.n)))(z, sigma)
    torch.testing.assert_close(own, scaled)
    assert not torch.equal(own, model.denoiser(z, sigma))
    assert str(PAPER.identity()) != str(replace(PAPER, guidance=Guidance("gradient")).identity())
    assert str(PAPER.identity()) != str(PAPER_POLISHED.identity())


def test_tuned_weights_multiply_the_papers() -> None:
    assert set(WEIGHTS) <= set(TASKS)
    (cell,) = cells_of("right-ventricle", [TUNED], profile("quick"))
    assert [c.weights.geometric for c in cell.spec.constraints] == [WEIGHTS["right-ventricle"]]
    untuned = set(TASKS) - set(WEIGHTS)
    assert all(cells_of(name, [TUNED], profile("quick")) == [] for name in untuned)
    assert weighted(task("calcium-count"), 0.1).constraints[0].weights.topological == 5.0


def test_weights_are_tuned_on_development_patients_only(tmp_path: Path) -> None:
    save_tiny_model(tmp_path / "models" / "coronary")
    lab = Lab(tmp_path / "cache", tmp_path, 40, models=tmp_path / "models", quiet=True)
    with pytest.raises(AnatomicaError, match="--targets development"):
        paper_weights.cells(profile("here"), lab)
    found = paper_weights.cells(profile("here"), replace(lab, half="development"))
    assert {cell.count for cell in found} == {8}
    assert {cell.setting("weight") for cell in found} == set(paper_weights.FACTORS)


def row(name: str, factor: float, **numbers: object) -> Finished:
    cell = Cell(name, PAPER, weighted(task(name), factor), task(name), 4, (("weight", factor),))
    return Finished(cell, [dict(numbers)] * 4, ("x",) * 4)


def test_the_best_weights_have_the_least_mean_of_relative_errors() -> None:
    def errors(mass: float, centroid: float, covariance: float) -> dict[str, float]:
        return {"mass": mass * 1e-5, "centroid": centroid * 1e-4, "covariance": covariance * 1e-5}

    # Right ventricle and aortic trunk of results/guidance-weight.json.
    done = [
        row("right-ventricle", 0.1, fidelity=errors(32.4, 246, 306)),
        row("right-ventricle", 1.0, fidelity=errors(74.8, 160, 300)),
        row("aortic-trunk", 0.1, fidelity=errors(1.23, 320, 48.2)),
        row("aortic-trunk", 1.0, fidelity=errors(1.57, 134, 59.7)),
        row("calcium-count", 0.1, betti=[2, 0, 0]),
        row("calcium-count", 1.0, betti=[2, 0, 0]),
        row("calcium-count", 3.0, betti=[1, 0, 0]),
    ]
    assert paper_weights.chosen(done) == {"right-ventricle": 0.1, "aortic-trunk": 1.0, "calcium-count": 1.0}


def test_unconditional_samples_are_asked_the_same() -> None:
    (cell,) = cells_of("mitral-valve", [UNCONDITIONAL], profile("quick"))
    assert cell.spec == cell.measured
    assert UNCONDITIONAL.judged
