"""Are samples copies of training patients, and are they as varied? Against held-out patients."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np
import torch

from anatomica.evaluate.experiments import geometric, topological
from anatomica.evaluate.experiments.figures import bars
from anatomica.evaluate.experiments.lab import Lab
from anatomica.evaluate.experiments.plan import Cell, Profile
from anatomica.evaluate.experiments.quality import floor, quality
from anatomica.evaluate.experiments.rows import OURS, UNCONDITIONAL
from anatomica.evaluate.experiments.runner import Finished, Runner
from anatomica.evaluate.experiments.tables import conditions, markdown, shown, write_results
from anatomica.evaluate.metrics.bootstrap import mean_interval
from anatomica.evaluate.metrics.memorisation import Known, Nearest, nearest_training

NAME = "memorisation"


def cells(profile: Profile, lab: Lab) -> list[Cell]:
    """Unconditional and guided cells of both tables: nothing is drawn that they did not draw."""
    both = [*geometric.cells(profile, lab), *topological.cells(profile, lab)]
    return [c for c in both if c.method.key in (UNCONDITIONAL.key, OURS.key)]


def write(runner: Runner, done: Sequence[Finished], out: Path) -> None:
    rows, summary, columns, samples = [], {}, {}, {}
    real: dict[str, Nearest] = {}
    known: dict[str, Known] = {}
    for f in done:
        lab, anatomy = runner.lab, f.cell.spec.anatomy
        training, held_out = lab.training(anatomy), lab.held_out(anatomy)
        runner.tell(f"nearest training patients of {f.cell.name}")
        drawn = [runner.load(key) for key in f.keys]
        maps = torch.from_numpy(np.stack([d.labels for d in drawn]))
        if anatomy not in known:
            known[anatomy] = Known.of(training.maps, training.clouds)
        near = nearest_training(maps, np.stack([d.features.clouds for d in drawn]), known[anatomy])
        if anatomy not in real:
            count = min(len(held_out), max(len(x.keys) for x in done))
            real[anatomy] = nearest_training(held_out.maps[:count], held_out.clouds[:count], known[anatomy])
        other = real[anatomy]
        varied, truly = quality(runner, f).diversity, floor(lab, anatomy, len(f.keys)).diversity
        edge = lab.model(anatomy).edge_mm
        rows.append(
            [
                f.cell.task,
                f.cell.method.title,
                str(len(f.keys)),
                f"{shown(mean_interval(near.dice))}, most {near.dice.max():.3f}",
                f"{shown(mean_interval(other.dice))}, most {other.dice.max():.3f}",
                f"{shown(mean_interval(near.emd * edge))}, least {np.nanmin(near.emd) * edge:.3g}",
                f"{shown(mean_interval(other.emd * edge))}, least {np.nanmin(other.emd) * edge:.3g}",
                shown(varied),
                shown(truly),
            ]
        )
        found = {
            "dice": near.dice,
            "emd_mm": near.emd * edge,
            "held_out_dice": other.dice,
            "held_out_emd_mm": other.emd * edge,
        }
        summary[f.cell.name] = {key: list(mean_interval(values)) for key, values in found.items()} | {
            "largest_dice": float(near.dice.max()),
            "least_emd_mm": float(np.nanmin(near.emd) * edge),
            "diversity": list(varied),
            "held_out_diversity": list(truly),
        }
        samples[f.cell.name] = {key: values.round(5).tolist() for key, values in found.items()}
        columns[(f.cell.task, f.cell.method.title)] = {
            "dice": mean_interval(near.dice),
            "diversity": varied,
        }
        columns[(f.cell.task, "held-out")] = {"dice": mean_interval(other.dice), "diversity": truly}
    header = ("Task", "Approach", "n", "Dice to nearest training", "the same of held-out")
    header += ("EMD to nearest training, mm", "the same of held-out", "diversity (1 - Dice)", "real")
    text = "# Memorisation and diversity\n\n" + markdown(header, rows)
    text += (
        "\nA generator that copies has a Dice near 1 and an EMD near 0, far from those of held-out patients. "
    )
    text += conditions(runner, done) + f"\n![memorisation]({NAME}.png)\n"
    write_results(runner, done, out, NAME, text, summary, {"nearest": samples})
    titles = {"dice": "Dice to nearest training patient", "diversity": "diversity (1 - Dice)"}
    bars(out / f"{NAME}.png", columns, titles, log=False)
