"""Every shipped weight from nothing: phantoms, autoencoder, denoiser, export. Each stage resumes."""

from __future__ import annotations

from pathlib import Path

import torch
from torch import Tensor

from anatomica.anatomy.catalogue import anatomy
from anatomica.data.dataset import LabelMapDataset
from anatomica.data.sources.phantoms import build_phantom_cache
from anatomica.errors import AnatomicaError
from anatomica.prior.presets import preset
from anatomica.prior.training.budget import Budget
from anatomica.prior.training.run import export_run, read_autoencoder
from anatomica.prior.training.train import CHECKPOINT, RunOptions, train_autoencoder, train_denoiser

FINE_COUNT = 16


def make_weights(
    name: str,
    folder: Path,
    target: Path,
    count: int,
    autoencoder_minutes: float,
    denoiser_minutes: float,
    workers: int = 1,
    preset_name: str = "small",
    quiet: bool = False,
) -> Path:
    """Phantoms 0 to count - 1 of an anatomy to a model folder, skipping what is already done."""
    about = anatomy(name)
    config = preset(preset_name, about.column)
    n = config.autoencoder.n
    build_phantom_cache(name, count, folder / "cache", n, workers=workers, progress=not quiet)
    training, validation = (LabelMapDataset(folder / "cache", s, n) for s in ("train", "validation"))
    maps = training.load_all()
    held_out, fine = held_out_maps(validation, name)
    run = folder / "run"

    def options(kind: str) -> RunOptions:
        return RunOptions(resume=(run / kind / CHECKPOINT).exists(), quiet=quiet)

    budget = Budget(minutes=autoencoder_minutes)
    train_autoencoder(maps, run / "autoencoder", about, config, budget, options("autoencoder"), held_out)
    model, _ = read_autoencoder(run)
    train_denoiser(
        maps, model, run / "denoiser", about, config, Budget(minutes=denoiser_minutes), options("denoiser")
    )
    recipe = {"source": "phantoms", "seeds": [0, count - 1], "train": len(maps), "held_out": len(held_out)}
    return export_run(run, target, maps, held_out, fine, {"data": recipe})


def held_out_maps(
    validation: LabelMapDataset, name: str, fine: Path | None = None
) -> tuple[Tensor, Tensor | None]:
    """The held-out patients, and the first of them on a finer grid: from a cache, or phantoms drawn again."""
    if fine is not None:
        return matching_fine(validation, LabelMapDataset(fine, "validation"))
    drawn_again = all(case.source.startswith("phantom ") for case in validation.cases)
    return validation.load_all(), fine_phantoms(validation, name, 2 * validation.n) if drawn_again else None


def fine_phantoms(validation: LabelMapDataset, name: str, n: int) -> Tensor:
    """The first held-out patients at twice the resolution; a phantom is the same patient on any grid."""
    from anatomica.data.phantoms import phantom

    seeds = [int(case.id.rsplit("-", 1)[1]) for case in validation.cases[:FINE_COUNT]]
    maps = (phantom(name, seed, n).label_map for seed in seeds)
    return torch.stack([torch.from_numpy(m.table.index[m.array]) for m in maps])


def matching_fine(coarse: LabelMapDataset, fine: LabelMapDataset) -> tuple[Tensor, Tensor]:
    """All coarse cases, those that the finer cache holds first; and these at the finer resolution."""
    places = {case.id: i for i, case in enumerate(fine.cases)}
    shared = [i for i, case in enumerate(coarse.cases) if case.id in places]
    if not shared:
        raise AnatomicaError("the finer cache holds none of the held-out cases")
    others = [i for i, case in enumerate(coarse.cases) if case.id not in places]
    finer = torch.stack([fine[places[coarse.cases[i].id]] for i in shared])
    return torch.stack([coarse[i] for i in shared + others]), finer
