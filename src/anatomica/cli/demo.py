"""anatomica demo: the main job in a few minutes, from nothing but the package."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

TASKS = {
    "cardiac": "right-ventricle",
    "aortic": "multiscale-aorta-small",
    "spinal": "vertebrae-connectivity",
    "coronary": "calcium-count",
}


def register(app: typer.Typer) -> None:
    app.command("demo")(demo)


def demo(
    out: Annotated[Path, typer.Option(help="Folder for label maps and pictures.")] = Path("demo"),
) -> None:
    """Draw a phantom of each anatomy, measure it by one of the paper's tasks, and show the results."""
    import json

    from rich.console import Console

    from anatomica.cli.measure import measurement_table
    from anatomica.data.phantoms import phantom
    from anatomica.measurement import measure, to_dict
    from anatomica.nifti import save
    from anatomica.picture import measurement_picture
    from anatomica.tasks import task

    console = Console()
    for kind, name in TASKS.items():
        with console.status(f"{kind}: drawing and measuring ..."):
            folder = out / kind
            label_map = phantom(kind, seed=0, n=128).label_map
            save(label_map, folder / f"{kind}.nii.gz")
            result = measure(label_map, task(name))
            text = json.dumps(to_dict(result), indent=1) + "\n"
            (folder / "measurement.json").write_text(text, encoding="utf-8")
            measurement_picture(result, folder / "measurement.png")
        console.print(measurement_table(result))
    console.print(f"Label maps (open them in 3D Slicer), JSON and pictures are in {out}/")
