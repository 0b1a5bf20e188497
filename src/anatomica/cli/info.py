"""anatomica info: what a bug report needs, and where things lie."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import typer

from anatomica.cli.output import Output, with_output

LIBRARIES = ("torch", "numpy", "scipy", "nibabel", "matplotlib")


def register(app: typer.Typer) -> None:
    app.command("info")(with_output(info))


def info(output: Output) -> None:
    """Versions, device, threads, shipped models with their hashes, and where caches lie.

    Examples:

    - `anatomica info`

    - `anatomica info --json`
    """
    from rich.table import Table

    found = gather()
    table = Table(show_header=False)
    for section, values in found.items():
        table.add_section()
        for name, value in values.items():
            table.add_row(section, name, str(value))
            section = ""
    output.print(table)
    output.result(found)


def gather() -> dict[str, dict[str, Any]]:
    """The same as plain data: section, name, value."""
    import os
    import platform
    from importlib.metadata import version

    import matplotlib
    import torch

    import anatomica
    from anatomica.cli.evaluate import BASELINES, CACHE
    from anatomica.evaluate.provenance import commit
    from anatomica.machine import usable_cores
    from anatomica.prior.zoo import WEIGHTS, shipped, shipped_hash

    cuda = [torch.cuda.get_device_name(i) for i in range(torch.cuda.device_count())]
    return {
        "versions": {
            "anatomica": anatomica.__version__,
            "commit": commit(),
            "python": platform.python_version(),
            **{name: version(name) for name in LIBRARIES},
        },
        "machine": {
            "system": f"{platform.system()} {platform.release()} {platform.machine()}",
            "cores": usable_cores(),
            "threads": torch.get_num_threads(),
            "OMP_NUM_THREADS": os.environ.get("OMP_NUM_THREADS", "not set"),
            "CPU": torch.backends.cpu.get_cpu_capability(),
            "CUDA devices": ", ".join(cuda) or "none",
        },
        "models": {name: shipped_hash(name) for name in shipped()},
        "folders": {
            "package": str(Path(anatomica.__file__).parent),
            "weights": str(WEIGHTS),
            "evaluation cache": str(CACHE.absolute()),
            "baselines": str(BASELINES.absolute()),
            "matplotlib cache": matplotlib.get_cachedir(),
        },
    }
