"""What a person sees of a run: a progress line, a JSONL log and a loss-curve picture."""

from __future__ import annotations

import json
import time
from pathlib import Path
from typing import Any

import numpy as np
from rich.console import Console
from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn

from anatomica.files import cannot_write, write_figure, write_text


class RunLog:
    """Appends one JSON object per step to `log.jsonl`; on resume, drops what lies after the checkpoint."""

    def __init__(self, folder: Path, title: str, start_step: int, quiet: bool = False) -> None:
        self.path = folder / "log.jsonl"
        kept = [row for row in read_log(self.path) if row["step"] < start_step]
        write_text(self.path, "".join(json.dumps(row) + "\n" for row in kept))
        self._file = self.path.open("ab", buffering=0)
        self.console = Console(quiet=quiet, stderr=True)
        self._bar = Progress(
            TextColumn("[bold]{task.description}"),
            BarColumn(),
            TextColumn("{task.percentage:5.1f} %  step {task.fields[step]}  {task.fields[rate]:.2f}/s"),
            TextColumn("{task.fields[losses]}"),
            TimeElapsedColumn(),
            TextColumn("left {task.fields[left]}"),
            console=self.console,
            disable=quiet,
        )
        self._task = self._bar.add_task(title, total=1.0, step=start_step, rate=0.0, losses="", left="?")
        self._smooth: dict[str, float] = {}
        self._start: tuple[float, float, int] | None = None

    def __enter__(self) -> RunLog:
        self._bar.start()
        return self

    def __exit__(self, error: type[BaseException] | None, *_: object) -> None:
        self._bar.stop()
        self._file.close()
        if error is None or not issubclass(error, Exception):  # else one problem would hide the other
            draw_curves(self.path)

    def step(self, step: int, share: float, values: dict[str, float]) -> None:
        """Record one step; `share` is the share of the budget that is spent."""
        self._append(json.dumps({"step": step, "time": round(time.time(), 2), **values}) + "\n")
        for key, value in values.items():
            self._smooth[key] = 0.95 * self._smooth.get(key, value) + 0.05 * value
        now = time.monotonic()
        self._start = self._start or (now, share, step)
        seconds, done, steps = now - self._start[0], share - self._start[1], step - self._start[2]
        left = seconds / done * (1 - share) if done > 0 else 0.0
        rate = steps / seconds if seconds > 0 else 0.0
        clock = f"{int(left) // 60}:{int(left) % 60:02d}"
        self._bar.update(self._task, completed=share, step=step, rate=rate, losses=self.shown(), left=clock)

    def _append(self, line: str) -> None:
        """One whole line, or none."""
        end, rest = self._file.tell(), memoryview(line.encode())
        try:
            while rest:
                rest = rest[self._file.write(rest) :]
        except OSError as error:
            self._file.truncate(end)
            raise cannot_write(self.path, error) from error

    def shown(self) -> str:
        """The smoothed losses in one line."""
        return "  ".join(f"{k} {v:.4g}" for k, v in self._smooth.items() if k != "lr")

    def note(self, text: str) -> None:
        self.console.print(text, highlight=False)


def read_log(path: Path) -> list[dict[str, Any]]:
    """All complete lines of a JSONL log; a line cut by a kill is dropped."""
    rows = []
    for line in path.read_text(encoding="utf-8", errors="replace").splitlines() if path.exists() else []:
        try:
            row = json.loads(line)
        except (ValueError, RecursionError):
            continue
        if isinstance(row, dict) and isinstance(row.get("step"), int):
            rows.append(row)
    return rows


def draw_curves(log: Path) -> None:
    """`loss.png` beside the log: every recorded quantity, smoothed, over the steps."""
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    rows = read_log(log)
    if len(rows) < 2:
        return
    names = [k for k in rows[-1] if k not in ("step", "time", "lr")]
    figure, axes = plt.subplots(
        1, len(names), figsize=(4 * len(names), 3), squeeze=False, layout="constrained"
    )
    for axis, name in zip(axes[0], names, strict=True):
        steps = np.array([row["step"] for row in rows if name in row])
        values = np.array([row[name] for row in rows if name in row])
        width = max(1, len(values) // 50)
        smooth = np.convolve(values, np.ones(width) / width, mode="valid")
        axis.plot(steps, values, color="0.8", linewidth=0.5)
        axis.plot(steps[width - 1 :], smooth, color="C0")
        axis.set_title(name)
        axis.set_xlabel("step")
        if (values > 0).all():
            axis.set_yscale("log")
    write_figure(log.with_name("loss.png"), figure, dpi=80)
    plt.close(figure)
