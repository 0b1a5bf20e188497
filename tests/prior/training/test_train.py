"""The training loops: they learn, resume exactly, and split over processes."""

import dataclasses
import json
import os
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest
import torch
from typer.testing import CliRunner

from anatomica.cli import app
from anatomica.data import build_phantom_cache
from anatomica.errors import AnatomicaError
from anatomica.prior.card import trained_steps
from anatomica.prior.presets import TrainingConfig
from anatomica.prior.training.augment import augment, resample_labels
from anatomica.prior.training.budget import Budget, learning_rate
from anatomica.prior.training.crops import tissue_crop
from anatomica.prior.training.log import read_log
from anatomica.prior.training.losses import dice_cross_entropy
from anatomica.prior.training.points import all_points, border_mask, draw_points
from anatomica.prior.training.random import batch_indices, generator
from anatomica.prior.training.run import export_run, read_autoencoder
from anatomica.prior.training.train import CHECKPOINT, RunOptions, train_autoencoder, train_denoiser
from anatomica.prior.zoo import load_model
from tiny_prior import CORONARY, TINY, ellipsoids, save_tiny_model

QUIET = RunOptions(quiet=True)


def losses(run: Path) -> list[float]:
    return [row["loss"] for row in read_log(run / "log.jsonl")]


def fit(run: Path, steps: int, options: RunOptions = QUIET, maps=None):
    maps = ellipsoids(8) if maps is None else maps
    return train_autoencoder(maps, run, CORONARY, TINY, Budget(steps=steps), options)


def test_autoencoder_learns_and_leaves_a_readable_run(tmp_path):
    fit(tmp_path / "run", 60)
    curve = losses(tmp_path / "run")
    assert len(curve) == 60
    assert sum(curve[-10:]) < 0.7 * sum(curve[:10])
    assert (tmp_path / "run" / "loss.png").stat().st_size > 1000
    assert json.loads((tmp_path / "run" / "run.json").read_text())["anatomy"] == "coronary"


def test_resuming_gives_the_unbroken_curve_and_weights(tmp_path):
    """A stop at step 5 of 12: the cosine schedule, data order, noise and Adam's state all go on."""
    whole = fit(tmp_path / "whole", 12)
    run = tmp_path / "broken"
    _stop_at(run, 5, lambda options: fit(run, 12, options))
    assert len(losses(run)) < 12
    resumed = fit(run, 12, dataclasses.replace(QUIET, resume=True))
    torch.testing.assert_close(losses(run), losses(tmp_path / "whole"), rtol=1e-5, atol=1e-6)
    for a, b in zip(resumed.parameters(), whole.parameters(), strict=True):
        torch.testing.assert_close(a, b, rtol=1e-4, atol=1e-5)


def _stop_at(run: Path, step: int, start) -> None:
    """Send this process SIGTERM as soon as the run's log has `step` lines; whoever waits for it must know."""

    def watch() -> None:
        while len(read_log(run / "log.jsonl")) < step:
            time.sleep(0.05)
        os.kill(os.getpid(), signal.SIGTERM)

    thread = threading.Thread(target=watch)
    thread.start()
    with pytest.raises(KeyboardInterrupt):
        start(QUIET)
    thread.join()


def test_decoders_train_on_in_the_same_latent_space(tmp_path):
    """The encoder keeps every bit, so that latents and the denoiser stay valid; the decoders do not."""
    first = fit(tmp_path / "autoencoder", 30)
    second = train_autoencoder(
        ellipsoids(8),
        tmp_path / "decoders",
        CORONARY,
        TINY,
        Budget(steps=30),
        QUIET,
        start=first,
        same_latents=True,
    )
    for a, b in zip(first.encoder.parameters(), second.encoder.parameters(), strict=True):
        assert torch.equal(a, b)
    assert sum(losses(tmp_path / "decoders")[-10:]) < 0.8 * sum(losses(tmp_path / "autoencoder")[:10])
    assert not torch.equal(first.field.from_position.weight, second.field.from_position.weight)
    read, about = read_autoencoder(tmp_path)
    assert about["kind"] == "decoders"
    assert torch.equal(read.field.from_position.weight, second.field.from_position.weight)


def test_the_field_of_a_model_trains_on_alone(tmp_path):
    """All else keeps every bit; exported with the model's denoiser it is a model again."""
    model = load_model(save_tiny_model(tmp_path / "model"))
    trained = train_autoencoder(
        ellipsoids(8),
        tmp_path / "run" / "decoders",
        CORONARY,
        TINY,
        Budget(steps=3),
        QUIET,
        start=model.autoencoder,
        same_latents=True,
        field_only=True,
        since={"model": model.hash, "steps": 5},
    )
    made = load_model(export_run(tmp_path / "run", tmp_path / "made", base=model))
    for name, before in model.autoencoder.state_dict().items():
        same = not name.startswith("field.") or "frequencies" in name
        assert torch.equal(before, trained.state_dict()[name]) == same, name
    for a, b in zip(model.denoiser.parameters(), made.denoiser.parameters(), strict=True):
        assert torch.equal(a, b)
    assert trained_steps(made.card, "autoencoder") == 8
    other = load_model(tmp_path / "model")
    other.autoencoder.get_parameter("encoder.out.bias").add_(1)
    with pytest.raises(AnatomicaError, match="denoiser would not fit"):
        export_run(tmp_path / "run", tmp_path / "wrong", base=other)


def test_training_on_from_a_start(tmp_path):
    """All parts go on from the start's weights, the encoder too; the record says where they are from, also
    after a stop and a resume without the start."""
    first, since = fit(tmp_path / "first", 30), {"model": "abc", "steps": 30}
    run = tmp_path / "run" / "autoencoder"
    train_autoencoder(ellipsoids(8), run, CORONARY, TINY, Budget(steps=30), QUIET, start=first, since=since)
    second = fit(run, 31, dataclasses.replace(QUIET, resume=True))
    assert sum(losses(run)[:5]) < 0.9 * sum(losses(tmp_path / "first")[:5])
    before, after = (torch.cat([p.flatten() for p in m.encoder.parameters()]) for m in (first, second))
    assert not torch.equal(before, after)
    assert read_autoencoder(tmp_path / "run")[1]["since"] == since


def test_a_field_of_other_sizes_begins_anew(tmp_path):
    first = fit(tmp_path / "first", 1)
    sizes = dataclasses.replace(TINY.autoencoder.field, split=2)
    config = dataclasses.replace(TINY, autoencoder=dataclasses.replace(TINY.autoencoder, field=sizes))
    maps, run = ellipsoids(8), tmp_path / "run"
    second = train_autoencoder(
        maps, run, CORONARY, config, Budget(steps=1), QUIET, start=first, same_latents=True
    )
    assert second.field.from_features.weight.shape[0] == 8 * first.field.from_features.weight.shape[0]
    assert torch.equal(first.encode(maps).mean, second.encode(maps).mean)


def test_a_start_of_other_sizes_is_refused(tmp_path):
    first, maps = fit(tmp_path / "first", 1), ellipsoids(2)
    wide = dataclasses.replace(TINY, autoencoder=dataclasses.replace(TINY.autoencoder, channels=(8, 24)))
    with pytest.raises(AnatomicaError, match="start's encoder does not fit"):
        train_autoencoder(maps, tmp_path / "a", CORONARY, wide, Budget(steps=1), QUIET, start=first)


def test_a_denoiser_trains_on(tmp_path):
    maps = ellipsoids(8)
    autoencoder = fit(tmp_path / "a", 5, maps=maps)
    first, _ = train_denoiser(maps, autoencoder, tmp_path / "d", CORONARY, TINY, Budget(steps=60), QUIET)
    train_denoiser(maps, autoencoder, tmp_path / "e", CORONARY, TINY, Budget(steps=5), QUIET, start=first)
    assert sum(losses(tmp_path / "e")) < sum(losses(tmp_path / "d")[:5])


def test_denoiser_learns(tmp_path):
    """Without the Gaussian, which knows most of so small a population before any training."""
    maps = ellipsoids(8)
    autoencoder = fit(tmp_path / "a", 5, maps=maps)
    plain = dataclasses.replace(TINY, edm=dataclasses.replace(TINY.edm, components=0))
    train_denoiser(maps, autoencoder, tmp_path / "d", CORONARY, plain, Budget(steps=30), QUIET)
    curve = losses(tmp_path / "d")
    assert sum(curve[-5:]) < sum(curve[:5])


def test_latents_are_cached(tmp_path):
    maps = ellipsoids(8)
    autoencoder = fit(tmp_path / "a", 5, maps=maps)
    train_denoiser(maps, autoencoder, tmp_path / "d", CORONARY, TINY, Budget(steps=30), QUIET)
    stamp = (tmp_path / "d" / "latents.safetensors").stat().st_mtime_ns
    options = dataclasses.replace(QUIET, resume=True)
    train_denoiser(maps, autoencoder, tmp_path / "d", CORONARY, TINY, Budget(steps=31), options)
    assert (tmp_path / "d" / "latents.safetensors").stat().st_mtime_ns == stamp
    assert len(losses(tmp_path / "d")) == 31


@pytest.mark.parametrize(("option", "closeness"), [("bf16", 0.03), ("checkpointing", 1e-5)])
def test_options_of_speed_and_memory_keep_the_loss_curve(tmp_path, option, closeness):
    maps, fast = ellipsoids(8), dataclasses.replace(QUIET, **{option: True})
    autoencoder = fit(tmp_path / "a", 6, maps=maps)
    fit(tmp_path / "b", 6, fast, maps)
    for run, options in (("c", QUIET), ("d", fast)):
        train_denoiser(maps, autoencoder, tmp_path / run, CORONARY, TINY, Budget(steps=6), options)
    for plain, changed in (("a", "b"), ("c", "d")):
        expected, found = losses(tmp_path / plain), losses(tmp_path / changed)
        assert found == pytest.approx(expected, rel=closeness)
        assert (found != expected) or option == "checkpointing"


def test_a_run_is_not_overwritten_nor_resumed_as_another(tmp_path):
    fit(tmp_path / "run", 1)
    with pytest.raises(AnatomicaError, match="--resume"):
        fit(tmp_path / "run", 2)
    with pytest.raises(AnatomicaError, match="seed"):
        fit(tmp_path / "run", 2, RunOptions(quiet=True, resume=True, seed=1))
    with pytest.raises(AnatomicaError, match="no checkpoint"):
        fit(tmp_path / "other", 2, RunOptions(quiet=True, resume=True))
    path = tmp_path / "run" / CHECKPOINT
    path.write_bytes(path.read_bytes()[:-100])
    with pytest.raises(AnatomicaError, match="not a readable"):
        fit(tmp_path / "run", 2, RunOptions(quiet=True, resume=True))


def test_wrong_data_is_named(tmp_path):
    with pytest.raises(AnatomicaError, match="24 voxels"):
        fit(tmp_path, 1, maps=ellipsoids(1, n=24))
    with pytest.raises(AnatomicaError, match="table has 4"):
        fit(tmp_path, 1, maps=ellipsoids(1) + torch.tensor(3, dtype=torch.uint8))


@pytest.mark.parametrize("part", ["decoders", "denoiser"])
def test_a_run_of_another_anatomy_is_refused(tmp_path, part):
    fit(tmp_path / "run" / "autoencoder", 1)
    cache = build_phantom_cache("aortic", 1, tmp_path / "cache", n=32).folder
    asked = ["train", part, "-a", "aortic", "-d", str(cache), "-o", str(tmp_path / "run")]
    result = CliRunner().invoke(app, asked)
    assert result.exit_code != 0
    assert "autoencoder of coronary anatomy, not aortic" in str(result.exception)


JOB = """
import sys, torch
sys.path.insert(0, sys.argv[1])
from pathlib import Path
from tiny_prior import CORONARY, TINY, ellipsoids
from anatomica.prior.training.train import RunOptions, train_autoencoder
from anatomica.prior.training.budget import Budget
torch.set_num_threads(1)
options = RunOptions(quiet=True, checkpoint_minutes=0.0, compile="compile" in sys.argv)
train_autoencoder(ellipsoids(8), Path(sys.argv[2]), CORONARY, TINY, Budget(steps=int(sys.argv[3])), options)
"""


@pytest.mark.slow
def test_resuming_after_kill_9_gives_the_unbroken_curve(tmp_path):
    script = tmp_path / "job.py"
    script.write_text(JOB)
    run = tmp_path / "killed"
    job = subprocess.Popen([sys.executable, str(script), str(Path(__file__).parent), str(run), "60"])
    while len(losses(run)) < 5:
        time.sleep(0.05)
    job.kill()
    job.wait()
    assert len(losses(run)) < 60
    fit(run, 60, dataclasses.replace(QUIET, resume=True))
    fit(tmp_path / "whole", 60)
    torch.testing.assert_close(losses(run), losses(tmp_path / "whole"), rtol=1e-3, atol=1e-4)


@pytest.mark.slow
def test_two_processes_have_the_loss_curve_of_one_with_the_double_batch(tmp_path):
    script = tmp_path / "job.py"
    script.write_text(JOB)
    here = str(Path(__file__).parent)
    command = [
        sys.executable,
        "-m",
        "torch.distributed.run",
        "--nproc-per-node",
        "2",
        "--master-port",
        "29617",
    ]
    subprocess.run([*command, str(script), here, str(tmp_path / "two"), "4"], check=True, timeout=300)
    subprocess.run([sys.executable, str(script), here, str(tmp_path / "one"), "4"], check=True, timeout=300)
    torch.testing.assert_close(losses(tmp_path / "two"), losses(tmp_path / "one"), rtol=1e-4, atol=1e-5)


@pytest.mark.slow
def test_a_compiled_objective_has_the_same_loss_curve(tmp_path):
    """In a process of its own: the types that these tests check at run time cannot be compiled."""
    script = tmp_path / "job.py"
    script.write_text(JOB)
    here = str(Path(__file__).parent)
    for run in ("plain", "compile"):
        command = [sys.executable, str(script), here, str(tmp_path / run), "6", run]
        subprocess.run(command, check=True, timeout=600)
    torch.testing.assert_close(losses(tmp_path / "compile"), losses(tmp_path / "plain"), rtol=1e-3, atol=1e-4)


def test_every_item_comes_once_an_epoch_whatever_the_batch():
    seen = torch.cat([batch_indices(3, step, 4, 10) for step in range(5)])
    assert sorted(seen[:10].tolist()) == sorted(seen[10:].tolist()) == list(range(10))
    assert seen[:10].tolist() != seen[10:].tolist()


def test_drawn_points_estimate_full_grid_sums_without_bias():
    """Importance weights: the mean over many draws of a weighted sum is the sum over all voxels."""
    maps = ellipsoids(1)
    value = torch.rand(16**3, generator=torch.Generator().manual_seed(0))
    exact = torch.bincount(maps.flatten().long(), weights=value)
    estimate = torch.zeros(len(exact))
    for seed in range(200):
        drawn = draw_points(maps, 256, torch.rand(1, 256, generator=generator(seed)))
        index = (drawn.points[0] * 16).long() @ torch.tensor([256, 16, 1])
        weights = (drawn.weights[0] * value[index]).double()
        estimate += torch.bincount(drawn.labels[0], weights=weights, minlength=len(exact)).float() / 200
    torch.testing.assert_close(estimate.double(), exact.double(), rtol=0.02, atol=0)


def test_drawn_loss_has_the_full_grids_value():
    maps = ellipsoids(1)
    logits = torch.randn(16**3, 4, generator=torch.Generator().manual_seed(1))
    full = all_points(maps)
    dice, entropy = dice_cross_entropy(logits[None], full.labels, full.weights)
    drawn = draw_points(maps, 50_000, torch.rand(1, 50_000, generator=generator(0)))
    index = (drawn.points[0] * 16).long() @ torch.tensor([256, 16, 1])
    dice2, entropy2 = dice_cross_entropy(logits[index][None], drawn.labels, drawn.weights)
    torch.testing.assert_close(
        torch.stack([dice, entropy]), torch.stack([dice2, entropy2]), rtol=0.01, atol=0
    )


def test_a_crop_keeps_its_place_in_the_cube():
    """Crops begin on latent cells and hold tissue; their points carry the labels of the whole map."""
    maps = ellipsoids(1)[0]
    for seed in range(5):
        part, start = tissue_crop(maps, 8, 4, generator(seed))
        assert (start % 4 == 0).all()
        assert (part > 0).any()
        drawn = draw_points(part[None], 64, torch.rand(1, 64, generator=generator(seed)))
        index = (start + drawn.points[0] * 8).long()
        assert (maps[tuple(index.T)] == drawn.labels[0]).all()


def test_borders_are_drawn_more_often():
    maps = ellipsoids(1)
    drawn = draw_points(maps, 4096, torch.rand(1, 4096, generator=generator(0)))
    border = border_mask(maps).flatten()
    index = (drawn.points[0] * 16).long() @ torch.tensor([256, 16, 1])
    assert border[index].float().mean() > 1.3 * border.float().mean()


def test_augmentation_moves_tissue_a_little_and_keeps_its_names():
    maps = ellipsoids(1)[0]
    moved = augment(maps, generator(1))
    assert set(moved.unique().tolist()) <= set(maps.unique().tolist())
    assert 0.5 < (moved > 0).sum() / (maps > 0).sum() < 2
    assert (moved != maps).any()
    line = (torch.arange(16) + 0.5) / 16
    grid = torch.stack(torch.meshgrid(line, line, line, indexing="ij"), -1).view(-1, 3)
    assert (resample_labels(maps, grid).view(16, 16, 16) == maps).all()


def test_budget_and_schedule():
    config = TrainingConfig(lr=1.0, batch=1, epochs=1, schedule="cosine", warmup=0.1)
    assert learning_rate(config, 0.0) < 0.02
    assert learning_rate(config, 0.1) == pytest.approx(1.0, abs=1e-3)
    assert learning_rate(config, 1.0) == pytest.approx(0.01)
    assert Budget(steps=10).progress(5, 1e9) == 0.5
    assert Budget(minutes=2.0).progress(10**6, 60.0) == 0.5
    for steps, minutes in ((None, None), (1, 1.0), (0, None), (None, -1.0)):
        with pytest.raises(AnatomicaError):
            Budget(steps, minutes)
