"""Memory of `anatomica generate` while its samples become many: label maps are streamed, not kept."""

from __future__ import annotations

import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any, NamedTuple

from anatomica.errors import AnatomicaError
from anatomica.evaluate.bench.writing import Tell, write_bench
from anatomica.prior.zoo import load_model, shipped

EVERY_S = 0.1
"""Between two looks at the process."""
FIRST = 10
"""Samples after which the memory is compared with that at the end."""


class Look(NamedTuple):
    """What a process holds now and held at most so far, in MiB."""

    resident_mb: float
    peak_mb: float


def run(
    out: Path, samples: int = 2000, steps: int = 2, model: str = "cardiac", tell: Tell = lambda _: None
) -> dict[str, Any]:
    """Run the command as a user does, look at its process, tell the table, write out/memory.json and .md."""
    if not Path("/proc/self/status").is_file():
        raise AnatomicaError("only Linux says how much memory another process holds")
    prior = load_model(model)
    which = [model] if model in shipped() else ["--model", model]
    options = [*which, "--samples", str(samples), "--steps", str(steps)]
    began = time.perf_counter()
    looks = _watched(options, prior.anatomy, samples)
    result = {
        "options": " ".join(options),
        "voxels": prior.n,
        "seconds": time.perf_counter() - began,
        "after": {name: look._asdict() for name, look in looks.items()},
        "grown_mb": {
            what: getattr(looks["the end"], what) - getattr(looks[f"{FIRST} samples"], what)
            for what in Look._fields
        },
    }
    text = markdown(result)
    tell(text)
    return write_bench(out, "memory", result, text, {prior.anatomy: prior.hash}, module="cli")


def _watched(options: list[str], anatomy: str, samples: int) -> dict[str, Look]:
    """The process when the first 10, 100, ... samples lie on the disk, and at its end."""
    counts = [n for n in (FIRST, 100, 500, 1000, samples) if n <= samples]
    looks: dict[str, Look] = {}
    with tempfile.TemporaryDirectory() as folder:
        command = [sys.executable, "-m", "anatomica", "generate", *options, "--quiet", "--out", folder]
        process = subprocess.Popen(command)
        last = Look(0.0, 0.0)
        while process.poll() is None:
            now = _look(process.pid) or last
            last = now
            while counts and (Path(folder) / f"{anatomy}-{counts[0] - 1:06d}.nii.gz").is_file():
                looks[f"{counts.pop(0)} samples"] = now
            time.sleep(EVERY_S)
        if process.returncode:
            raise AnatomicaError(f"anatomica generate ended with exit code {process.returncode}")
    return looks | {"the end": last}


def _look(pid: int) -> Look | None:
    """None if the process has ended."""
    try:
        lines = Path(f"/proc/{pid}/status").read_text().splitlines()
    except OSError:
        return None
    parts = (line.partition(":") for line in lines if line.startswith("Vm"))
    held = {name: int(rest.split()[0]) / 2**10 for name, _, rest in parts}  # the kernel's kB are KiB
    return Look(held["VmRSS"], held["VmHWM"]) if "VmRSS" in held else None


def markdown(result: dict[str, Any]) -> str:
    """Memory as lines of Markdown."""
    grown = result["grown_mb"]
    lines = [
        f"`anatomica generate {result['options']}` at {result['voxels']}^3, {result['seconds']:.0f} s. From "
        f"the first {FIRST} samples to the end what it holds grew by {grown['resident_mb']:.0f} MB, and the "
        f"most that it held at any moment by {grown['peak_mb']:.0f} MB.",
        "",
        "| after | resident MB | peak MB |",
        "|---|---|---|",
    ]
    for name, look in result["after"].items():
        lines.append(f"| {name} | {look['resident_mb']:.0f} | {look['peak_mb']:.0f} |")
    return "\n".join(lines) + "\n"
