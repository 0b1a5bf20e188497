"""How good is a prior? Unconditional samples against held-out patients; which sampler earns its cost."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import torch
from jaxtyping import UInt8
from scipy import stats
from torch import Tensor

from anatomica.anatomy.label_map import LabelMap
from anatomica.anatomy.labels import LabelTable
from anatomica.evaluate.metrics.bootstrap import distance_interval
from anatomica.evaluate.metrics.frechet import fmd, morphology
from anatomica.evaluate.metrics.overlap import pairwise_dice
from anatomica.files import write_figure, write_text
from anatomica.generation.draw import draw
from anatomica.generation.options import Options
from anatomica.generation.plausibility import oddities
from anatomica.prior.zoo import Model

JUDGED = 400
"""Held-out patients at most that the rules of plausibility are tried on; one takes a quarter of a second."""


def volume_table(
    samples: UInt8[Tensor, "m n n n"], reference: UInt8[Tensor, "k n n n"], table: LabelTable, edge_mm: float
) -> dict[str, dict[str, float]]:
    """Volumes of each tissue in mL: mean and SD of both sets, two-sample Kolmogorov-Smirnov distance."""
    count_a, count_b = (
        np.stack([np.bincount(m.flatten().numpy(), minlength=len(table)) for m in maps])
        for maps in (samples, reference)
    )
    voxel_ml = (edge_mm / samples.shape[1]) ** 3 / 1000
    out = {}
    for c, name in enumerate(table.names):
        if c == 0:
            continue
        a, b = count_a[:, c] * voxel_ml, count_b[:, c] * voxel_ml
        numbers = {"mean_ml": a.mean(), "sd_ml": a.std(), "reference_mean_ml": b.mean()}
        numbers |= {"reference_sd_ml": b.std(), "ks": stats.ks_2samp(a, b)[0]}
        out[name] = {k: float(f"{v:.4g}") for k, v in numbers.items()}
    return out


def decoded(model: Model, count: int) -> UInt8[Tensor, "m n n n"]:
    """Label indices of unconditional samples at the model's resolution, as decoded."""
    options = Options(tries=1, repair=False)
    return torch.stack([indices(s.label_map) for s in draw(model, range(count), options=options)])


def indices(label_map: LabelMap) -> UInt8[Tensor, "n n n"]:
    """Label indices: positions in the label table."""
    return torch.from_numpy(label_map.table.index[label_map.array])


def quality(
    model: Model, training: UInt8[Tensor, "m n n n"], held_out: UInt8[Tensor, "k n n n"], count: int = 64
) -> dict[str, Any]:
    """The card's numbers for unconditional samples as `generate` gives them; FMD also as first decoded."""
    classes = len(model.table)
    raw, made = decoded(model, count), list(draw(model, range(count)))
    maps = torch.stack([indices(s.label_map) for s in made])
    reference = torch.cat([training, held_out])
    nearest, real = (pairwise_dice(x[:32], training, classes).amax(1) for x in (maps, held_out))
    held, judged = morphology(held_out, classes), held_out[:JUDGED]
    return {
        "samples": count,
        "fmd": float(f"{fmd(morphology(maps, classes), held):.4g}"),
        "fmd_as_decoded": float(f"{fmd(morphology(raw, classes), held):.4g}"),
        "mended_share": float(f"{sum(s.mended for s in made) / int((maps > 0).sum()):.4g}"),
        "drawn_a_sample": round(sum(s.drawn for s in made) / count, 3),
        "unlike_training": sum(bool(s.unusual) for s in made),
        "held_out_judged": len(judged),
        "held_out_unlike_training": sum(bool(oddities(model, model.label_map(m.numpy()))) for m in judged),
        "fmd_training": float(f"{fmd(morphology(training[:count], classes), held):.4g}"),
        "nearest_training_dice": round(float(nearest.mean()), 4),
        "nearest_training_dice_max": round(float(nearest.max()), 4),
        "nearest_training_dice_of_held_out": round(float(real.mean()), 4),
        "nearest_training_dice_max_of_held_out": round(float(real.max()), 4),
        "volumes": volume_table(maps, reference, model.table, model.edge_mm),
    }


CURVE = (
    ("euler", 7.0, 0.0),
    ("multistep", 7.0, 0.0),
    ("multistep", 7.0, 1.0),
    ("multistep", 7.0, 2.0),
    ("stochastic", 7.0, 0.0),
    ("stochastic", 1.0, 0.0),
)
"""Methods, rho and eta of the curve: `stochastic` without churn is Heun's method, rho 1 the paper's."""


def sampling_curve(
    model: Model,
    held_out: UInt8[Tensor, "k n n n"],
    out: Path,
    count: int = 32,
    calls: Sequence[int] = (8, 12, 18, 25, 50),
    tell: Callable[[str], None] = lambda line: None,
) -> list[dict[str, Any]]:
    """FMD with its interval against denoiser calls per sample; writes a JSON file and a plot."""
    truth = morphology(held_out, len(model.table))
    rows: list[dict[str, Any]] = []
    for method, rho, eta in CURVE:
        for most in calls:
            steps = (most + 1) // 2 if method == "stochastic" else most
            config = replace(model.sampling, method=method, rho=rho, steps=steps, s_churn=0.0, eta=eta)
            began = time.perf_counter()
            maps = decoded(replace(model, sampling=config), count)
            seconds = (time.perf_counter() - began) / count
            found = morphology(maps, len(model.table))
            rows.append(
                {
                    "name": f"{method}, rho {rho:g}" + (f", eta {eta:g}" if eta else ""),
                    "samples": count,
                    "steps": steps,
                    "calls": 2 * steps - 1 if method == "stochastic" else steps,
                    "fmd": list(distance_interval(lambda chosen, x=found: fmd(x[chosen], truth), count)),
                    "seconds": seconds,
                }
            )
            tell("{name}, {calls} calls: FMD {fmd[0]:.4g}, {seconds:.2f} s per sample".format_map(rows[-1]))
    out.mkdir(parents=True, exist_ok=True)
    write_text(out / f"sampling-{model.anatomy}.json", json.dumps(rows, indent=1) + "\n")
    _plot_curve(rows, model.anatomy, out / f"sampling-{model.anatomy}.png")
    return rows


def _plot_curve(rows: Sequence[dict[str, Any]], title: str, path: Path) -> None:
    import matplotlib.pyplot as plt

    calls_shown = sorted({row["steps"] for row in rows if not row["name"].startswith("stochastic")})
    figure, axis = plt.subplots(figsize=(6, 4), layout="constrained")
    for name in dict.fromkeys(row["name"] for row in rows):
        calls, found = zip(*((r["calls"], r["fmd"]) for r in rows if r["name"] == name), strict=True)
        (line,) = axis.plot(calls, [value for value, _, _ in found], "o-", label=name)
        low, high = [x[1] for x in found], [x[2] for x in found]
        axis.fill_between(calls, low, high, color=line.get_color(), alpha=0.1, linewidth=0)
    axis.set(xlabel="denoiser calls per sample", ylabel="FMD to held-out patients", title=title)
    axis.set(xscale="log", yscale="log", xticks=calls_shown, xticklabels=[str(c) for c in calls_shown])
    axis.minorticks_off()
    axis.legend(fontsize=8)
    write_figure(path, figure, dpi=110)
    plt.close(figure)
