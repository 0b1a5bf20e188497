"""Cost of measuring: against the number of domains, the grid size, and one pass over memory."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import torch
from rich.table import Table
from torch import Tensor

from anatomica.evaluate.bench.timing import Timed, interleaved
from anatomica.evaluate.bench.writing import Tell, write_bench
from anatomica.measurement.domains.domain import Domains
from anatomica.measurement.domains.frames import fibonacci_lattice, orthonormalize
from anatomica.measurement.domains.volumes import box_domain, global_domain
from anatomica.measurement.moments import measure_moments
from anatomica.measurement.parse import slice_domains

N = 128
PLANES = (1, 4, 16)
GRIDS = (16, 32, 64, 128)


def run(out: Path, rounds: int = 15, tell: Tell = lambda _: None) -> dict:
    """Time everything interleaved, tell the table, write out/measure.json and out/measure.md."""
    S = torch.rand(1, N, N, N, generator=torch.Generator().manual_seed(0))
    weights = torch.rand(N, generator=torch.Generator().manual_seed(1))
    whole = global_domain((N, N, N)).to(S)
    contenders: Timed = {
        "one einsum pass": lambda: torch.einsum("bxyz,z->bxy", S, weights),
        "whole volume": lambda: measure(S, whole),
    }
    planes = {f"{k} planes": turned_planes(k).to(S) for k in PLANES}
    boxes = {f"box of {g}^3 points": turned_box(g).to(S) for g in GRIDS}
    for name, domains in (planes | boxes).items():
        contenders[name] = lambda domains=domains: measure(S, domains)
    ms = {name: 1000 * seconds for name, seconds in interleaved(contenders, rounds).items()}
    result = {
        "n": N,
        "rounds": rounds,
        "threads": torch.get_num_threads(),
        "ms": {name: round(value, 3) for name, value in ms.items()},
        "whole_volume_over_einsum_pass": ms["whole volume"] / ms["one einsum pass"],
        "16_planes_over_1": ms["16 planes"] / ms["1 planes"],
    }
    _print(result, tell)
    return write_bench(out, "measure", result, _markdown(result), {})


def measure(S: Tensor, domains: Domains) -> object:
    """Parse and measure, as `anatomica measure` and guidance do."""
    return measure_moments(slice_domains(S, domains), domains)


def turned_planes(count: int) -> Domains:
    """Planes of 32 x 32 points in all directions."""
    normal = fibonacci_lattice(count)
    beta, gamma = orthonormalize(normal)
    R = torch.stack([normal, beta, gamma], dim=-1)
    size = torch.tensor([1 / N, 0.25, 0.25], dtype=torch.float64).expand(count, 3)
    return box_domain(torch.full((count, 3), 0.5, dtype=torch.float64), size, R, (1, 32, 32))


def turned_box(grid: int) -> Domains:
    """A half-size box at an angle, so that every point is interpolated."""
    R = turned_planes(5).R[1:2]
    half = torch.full((1, 3), 0.5, dtype=torch.float64)
    return box_domain(half, half, R, (grid, grid, grid))


def _rows(result: dict) -> Sequence[tuple[str, str, str]]:
    base = result["ms"]["one einsum pass"]
    return [(name, f"{ms:.3f}", f"{ms / base:.2f}") for name, ms in result["ms"].items()]


def _print(result: dict, tell: Tell) -> None:
    table = Table("what", "ms", "x einsum pass", title=f"Measuring in a {N}^3 volume, medians")
    for row in _rows(result):
        table.add_row(*row)
    tell(table)
    tell(
        f"whole volume / einsum pass: {result['whole_volume_over_einsum_pass']:.2f} (at most 3 wanted); "
        f"16 planes / 1: {result['16_planes_over_1']:.2f} (below 3 wanted)"
    )


def _markdown(result: dict) -> str:
    lines = [
        "| what | ms | x einsum pass |",
        "|---|---|---|",
        *("| " + " | ".join(r) + " |" for r in _rows(result)),
    ]
    return (
        "\n".join(lines)
        + f"\n\nMedians of {result['rounds']} interleaved rounds, {result['threads']} threads.\n"
    )
