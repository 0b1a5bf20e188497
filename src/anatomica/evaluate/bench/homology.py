"""Persistent homology against cripser and gudhi: the same volumes, interleaved, one core each.

Times are CPU times, because wall-clock time on a shared machine measures its other users; on one idle core
the two agree.  The floor is one pass of the 26-neighbour stencil, which any method of this kind has to make.
"""

import subprocess
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from statistics import median
from time import process_time

import numpy as np
from jaxtyping import Float32
from numpy import ndarray
from rich.table import Table
from scipy.ndimage import gaussian_filter

from anatomica import _kernel
from anatomica.errors import AnatomicaError
from anatomica.evaluate.bench.writing import Tell, write_bench
from anatomica.measurement.homology import persistence  # pyright: ignore[reportAttributeAccessIssue]

INPUTS = ("smooth", "phantom", "saturated", "noise")
CLAMP = 0.01
SATURATION = 0.01


def make_input(kind: str, n: int, seed: int = 0) -> Float32[ndarray, "n n n"]:
    """One of INPUTS: a probability volume as guidance meets it."""
    rng = np.random.default_rng(seed)
    if kind == "smooth":
        field = gaussian_filter(rng.standard_normal((n, n, n)), n / 32)
        logits = 3 * field / field.std()
    elif kind == "noise":
        logits = rng.standard_normal((n, n, n))
    else:
        solid = gaussian_filter(rng.standard_normal((n, n, n)), n / 16) > 0
        logits = np.where(solid, 6.0, -6.0) + rng.standard_normal((n, n, n))
    volume = 1 / (1 + np.exp(-logits))
    if kind == "saturated":
        volume = np.where(volume < SATURATION, 0, np.where(volume > 1 - SATURATION, 1, volume))
    return volume.astype(np.float32)


def run(
    out: Path,
    sizes: Sequence[int] = (64, 128),
    rounds: int = 5,
    gudhi_up_to: int = 64,
    tell: Tell = lambda _: None,
) -> dict:
    """Time every input at every size; tell the table, write out/homology.md and out/homology.json."""
    volumes = {(kind, n): make_input(kind, n) for n in sizes for kind in INPUTS}
    seconds: dict[tuple[str, int], dict[str, list[float]]] = {key: {} for key in volumes}
    for turn in range(rounds):
        for (kind, n), volume in volumes.items():
            for name, contender in _contenders(volume, with_gudhi=n <= gudhi_up_to).items():
                if name == "gudhi" and turn >= max(1, rounds // 2):
                    continue  # the slowest by far: half the rounds
                started = process_time()
                contender()
                seconds[kind, n].setdefault(name, []).append(process_time() - started)
    rows = [_row(kind, n, volumes[kind, n], times) for (kind, n), times in seconds.items()]
    result = {
        "sizes": list(sizes),
        "rounds": rounds,
        "clamp": CLAMP,
        "rows": rows,
        "extra_memory_mb": {str(n): extra_memory_mb(n) for n in sizes},
    }
    tell(_table(result))
    for n, extra in result["extra_memory_mb"].items():
        tell(f"extra memory at {n}^3: {_megabytes(extra)}")
    return write_bench(out, "homology", result, _markdown(result), {})


def _contenders(volume: ndarray, with_gudhi: bool) -> dict[str, Callable[[], object]]:
    try:
        import cripser
        import gudhi
    except ImportError as error:
        raise AnatomicaError(
            f"the benchmark needs {error.name}, which is not installed; pip install 'anatomica[bench]'."
        ) from None
    negated = -volume.astype(np.float64)
    clamped = -np.where(volume < CLAMP, 0, np.where(volume > 1 - CLAMP, 1, volume)).astype(np.float64)
    contenders: dict[str, Callable[[], object]] = {
        "cripser": lambda: cripser.computePH(negated, maxdim=2, location="yes"),
        "ours": lambda: persistence(volume, threads=1),
        "ours_clamped": lambda: persistence(volume, clamp=CLAMP, threads=1),
        "cripser_clamped": lambda: cripser.computePH(clamped, maxdim=2, location="yes"),
        "floor": lambda: _kernel.neighbour_masks(volume),
    }
    if with_gudhi:
        contenders["gudhi"] = lambda: gudhi.CubicalComplex(vertices=negated).compute_persistence(2)
    return contenders


def _row(kind: str, n: int, volume: ndarray, times: dict[str, list[float]]) -> dict:
    ms = {name: 1000 * median(values) for name, values in times.items()}
    diagram = persistence(volume, threads=1)
    assert not isinstance(diagram, list)
    return {
        "input": kind,
        "size": n,
        "pairs": len(diagram.dim),
        "ms": {name: round(value, 2) for name, value in ms.items()},
        "times_faster_than_cripser": ms["cripser"] / ms["ours"],
        "times_faster_than_gudhi": ms["gudhi"] / ms["ours"] if "gudhi" in ms else None,
        "clamped_times_faster_than_cripser": ms["cripser"] / ms["ours_clamped"],
        "clamped_times_faster_than_cripser_clamped": ms["cripser_clamped"] / ms["ours_clamped"],
        "times_the_floor": ms["ours"] / ms["floor"],
        "clamped_times_the_floor": ms["ours_clamped"] / ms["floor"],
    }


def extra_memory_mb(n: int) -> float | None:
    """Peak memory that one call adds, in a fresh process, on noise: the most critical cells of all inputs.

    None where the peak cannot be reset; only Linux's /proc allows that.
    """
    if not Path("/proc/self/clear_refs").exists():
        return None
    code = f"""
from anatomica.evaluate.bench.homology import make_input
from anatomica.measurement.homology import persistence
volume = make_input("noise", 16)
persistence(volume)
volume = make_input("noise", {n})
def peak_kb():
    return int(open("/proc/self/status").read().split("VmHWM:")[1].split()[0])
open("/proc/self/clear_refs", "w").write("5")  # forget the peak of making the input
before = peak_kb()
persistence(volume, threads=1)
print((peak_kb() - before) / 1024)
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    return round(float(done.stdout), 1)


COLUMNS = (
    ("input", lambda row: row["input"]),
    ("size", lambda row: f"{row['size']}^3"),
    ("pairs", lambda row: f"{row['pairs']:,}"),
    ("ours ms", lambda row: f"{row['ms']['ours']:.1f}"),
    ("cripser ms", lambda row: f"{row['ms']['cripser']:.1f}"),
    ("gudhi ms", lambda row: f"{row['ms']['gudhi']:.0f}" if "gudhi" in row["ms"] else "-"),
    ("x cripser", lambda row: f"{row['times_faster_than_cripser']:.1f}"),
    (
        "x gudhi",
        lambda row: f"{row['times_faster_than_gudhi']:.0f}" if row["times_faster_than_gudhi"] else "-",
    ),
    ("x floor", lambda row: f"{row['times_the_floor']:.1f}"),
    ("clamped ms", lambda row: f"{row['ms']['ours_clamped']:.1f}"),
    ("clamped x cripser", lambda row: f"{row['clamped_times_faster_than_cripser']:.1f}"),
    ("both clamped x", lambda row: f"{row['clamped_times_faster_than_cripser_clamped']:.1f}"),
)


def _table(result: dict) -> Table:
    table = Table(title="Persistent homology, medians of CPU time on one core")
    for name, _ in COLUMNS:
        table.add_column(name, justify="left" if name == "input" else "right")
    for row in result["rows"]:
        table.add_row(*(cell(row) for _, cell in COLUMNS))
    return table


def _megabytes(extra: float | None) -> str:
    return "not known on this system" if extra is None else f"{extra} MB"


def _markdown(result: dict) -> str:
    lines = [
        "| " + " | ".join(name for name, _ in COLUMNS) + " |",
        "|" + "---|" * len(COLUMNS),
        *("| " + " | ".join(cell(row) for _, cell in COLUMNS) + " |" for row in result["rows"]),
    ]
    memory = ", ".join(f"{_megabytes(extra)} at {n}^3" for n, extra in result["extra_memory_mb"].items())
    return "\n".join(lines) + f"\n\nExtra memory: {memory}. Clamp: {result['clamp']}.\n"
