"""A guided sample is the same whichever batch it is drawn in: every task, by itself and among others."""

from functools import cache

import numpy as np
import pytest

from anatomica.anatomy.label_map import LabelMap
from anatomica.data.phantoms import phantom
from anatomica.evaluate.experiments.plan import at_scale
from anatomica.generation.draw import generate
from anatomica.generation.options import Options
from anatomica.guidance.solver import Guidance
from anatomica.prior.zoo import Model, load_model
from anatomica.spec.spec import Spec
from anatomica.spec.tasks import TASKS, task
from tiny_prior import save_tiny_model

N = 32


@cache
def patient(anatomy: str, n: int) -> LabelMap:
    return phantom(anatomy, 900_001, n).label_map


def same(model: Model, spec: Spec, sizes: tuple[int, ...], options: Options) -> None:
    """Seed 2 by itself, and third in batches of these sizes: the same voxels and the same checks."""
    reference = patient(model.anatomy, max(N, model.n))

    def drawn(seeds: range, batch: int):
        made = generate(
            model,
            spec,
            seeds=seeds,
            reference=reference,
            options=Options(**{**vars(options), "batch": batch}),
        )
        return next(s for s in made if s.seed == 2)

    alone = drawn(range(2, 3), 1)
    for size in sizes:
        among = drawn(range(size), size)
        assert np.array_equal(alone.label_map.array, among.label_map.array)
        assert alone.checks == among.checks


@pytest.fixture(scope="module")
def tiny(tmp_path_factory):
    made: dict[str, Model] = {}

    def model(anatomy: str) -> Model:
        if anatomy not in made:
            folder = tmp_path_factory.mktemp(anatomy)
            made[anatomy] = load_model(save_tiny_model(folder, anatomy, n=N))
        return made[anatomy]

    return model


@pytest.mark.parametrize("name", sorted(TASKS))
def test_a_task_gives_the_same_sample_by_itself_and_in_a_batch_of_4(name: str, tiny) -> None:
    """With grids of the tiny model's scale, and a short polish: untrained, it meets nothing, and would be
    polished to the last step."""
    options = Options(steps=1, tries=1, guidance=Guidance(polish=2))
    same(tiny(task(name).anatomy), at_scale(task(name), N), (4,), options)


@pytest.mark.slow
@pytest.mark.parametrize("name", sorted(TASKS))
def test_a_task_gives_the_same_sample_in_batches_of_4_and_8(name: str) -> None:
    """With the shipped weights and all steps."""
    same(load_model(task(name).anatomy), task(name), (4, 8), Options(tries=1))
