"""Cost of an unconditional sample: by itself and in a batch, and where the time goes."""

from __future__ import annotations

from pathlib import Path
from statistics import median
from time import perf_counter
from typing import Any

import torch

from anatomica.evaluate.bench.command import command_cost, command_lines
from anatomica.evaluate.bench.writing import Tell, memory, write_bench
from anatomica.generation.draw import decode, draw
from anatomica.generation.options import Options
from anatomica.machine import peak_memory_mb
from anatomica.prior.sampler import noise_levels
from anatomica.prior.zoo import Model, load_model

BATCHES = (1, 8)


def run(
    out: Path, rounds: int = 3, models: tuple[str, ...] = ("cardiac",), tell: Tell = lambda _: None
) -> dict[str, Any]:
    """Sample and decode in interleaved rounds, tell the table, write out/generation.json and .md.

    With the shipped hearts among the models, also the whole command (`command_cost`).
    """
    result: dict[str, Any] = {"rounds": rounds, "threads": torch.get_num_threads(), "models": {}}
    for name in models:
        model = load_model(name)
        seconds: dict[tuple[int, str], list[float]] = {}
        for seed in range(rounds + 1):
            for batch in BATCHES:
                for part, spent in timed(model, range(seed, seed + batch)).items():
                    seconds.setdefault((batch, part), []).append(spent / batch)
        found = {
            f"batch {batch}": {part: median(times[1:]) for (b, part), times in seconds.items() if b == batch}
            for batch in BATCHES
        }
        for parts in found.values():
            parts["share of the U-Net"] = parts["U-Net"] / parts["sample"]
        steps = len(noise_levels(model.sampling)) - 1
        result["models"][model.anatomy] = {"hash": model.hash, "steps": steps} | found
    result["peak_memory_mb"] = peak_memory_mb()
    if "cardiac" in models:
        result["command"] = command_cost(rounds=rounds)
    text = markdown(result)
    tell(text)
    weights = {name: found["hash"] for name, found in result["models"].items()}
    return write_bench(out, "generation", result, text, weights)


def timed(model: Model, seeds: range) -> dict[str, float]:
    """Seconds of all samples together: in all, in the U-Net, and decoding to label maps."""
    inside = 0.0

    def denoiser(z: torch.Tensor, sigma: torch.Tensor) -> torch.Tensor:
        nonlocal inside
        began = perf_counter()
        clean = model.denoiser(z, sigma)
        inside += perf_counter() - began
        return clean

    options = Options(tries=1, repair=False, batch=len(seeds))
    began = perf_counter()
    (first, *_) = draw(model, seeds, options=options, denoiser=denoiser)
    done = perf_counter()
    decode(model, first.latent[None].expand(len(seeds), -1, -1, -1, -1), model.n)
    return {"sample": done - began, "U-Net": inside, "decoding": perf_counter() - done}


def markdown(result: dict[str, Any]) -> str:
    lines = [
        f"Unconditional samples, medians of {result['rounds']} rounds, {result['threads']} threads.",
        "",
        "| model | steps | batch | s per sample | U-Net s | decoding s | share of the U-Net |",
        "|---|---|---|---|---|---|---|",
    ]
    for name, found in result["models"].items():
        for batch in BATCHES:
            parts = found[f"batch {batch}"]
            lines.append(
                f"| {name} {found['hash']} | {found['steps']} | {batch} | {parts['sample']:.2f} | "
                f"{parts['U-Net']:.2f} | {parts['decoding']:.2f} | {parts['share of the U-Net']:.0%} |"
            )
    if "command" in result:
        lines += ["", *command_lines(result["command"])]
    return "\n".join(lines) + f"\n\nPeak memory {memory(result['peak_memory_mb'])}.\n"
