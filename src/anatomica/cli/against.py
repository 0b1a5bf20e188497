"""`anatomica phantom-population --against`: phantoms beside real patients."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

from anatomica.errors import AnatomicaError

if TYPE_CHECKING:
    from rich.table import Table

    from anatomica.cli.output import Output
    from anatomica.data.phantoms import Phantom

SHOWN = 3
"""Patients of each kind in the picture."""


def compare_with_real(
    output: Output, path: Path, anatomies: list[str], labels: str | None, count: int, n: int, results: Path
) -> None:
    """Compare `count` phantoms with the label maps of a folder, or with a file of spinal keypoints."""
    from anatomica.anatomy.catalogue import anatomy as anatomy_of
    from anatomica.evaluate.provenance import provenance
    from anatomica.files import write_json

    if len(anatomies) != 1:
        raise AnatomicaError("--against compares the phantoms of one anatomy; give one --anatomy")
    if not path.exists():
        raise AnatomicaError(
            f"{path} does not exist; give a folder of NIfTI files or a CSV file of keypoints"
        )
    name = anatomy_of(anatomies[0]).name
    if (name == "spinal") != path.is_file():
        raise AnatomicaError(
            f"{path} is a {'file' if path.is_file() else 'folder'}: spines are compared with a CSV file of "
            f"keypoints, other anatomies with a folder of NIfTI files"
        )
    results.mkdir(parents=True, exist_ok=True)
    compare = _keypoints if path.is_file() else _label_maps
    result = compare(output, path, name, labels, count, n, results)
    file = results / f"phantoms-{name}-against.json"
    write_json(file, result | {"anatomy": name, "provenance": provenance("data.phantom_population", {})})
    output.result(result | {"file": file})


def _keypoints(
    output: Output, path: Path, name: str, labels: str | None, count: int, n: int, results: Path
) -> dict[str, Any]:
    from anatomica.data.spine_realism import against_keypoints, format_keypoints

    if labels is not None:
        raise AnatomicaError("--labels names the labels of NIfTI files; a file of keypoints has none")
    result = against_keypoints(path, (made.truth for made in _phantoms(output, name, count, n)))
    output.print(format_keypoints(result))
    return result


def _label_maps(
    output: Output, path: Path, name: str, labels: str | None, count: int, n: int, results: Path
) -> dict[str, Any]:
    import numpy as np

    from anatomica.anatomy.catalogue import anatomy as anatomy_of
    from anatomica.data.phantom_population import REAL
    from anatomica.data.realism import features, real_cases
    from anatomica.evaluate.likeness import compare
    from anatomica.report.side_by_side import side_by_side

    anatomy = anatomy_of(name)
    structures = REAL[name].structures if name in REAL else anatomy.table.tissues
    cases = real_cases(path, anatomy, labels)
    real = []
    for file, label_map in cases.items():
        missing = [x for x in structures if x not in label_map.present()]
        if missing:
            raise AnatomicaError(f"{path / file} has no {', '.join(missing)}; see --labels")
        real.append(features(label_map, structures))
    rows, healthy, shown = [], [], []
    for made in _phantoms(output, name, count, n):
        rows.append(features(made.label_map, structures))
        healthy.append(made.truth.pathology is None)
        if made.truth.pathology is None and len(shown) < SHOWN:
            shown.append((f"phantom {made.truth.seed}", made.label_map))
    found = np.stack(real)
    result = compare(np.stack(rows), found, structures, path.name)
    output.print(_table(result))
    output.print(_summary("all phantoms", result))
    if len(found) * 2 <= sum(healthy) < len(rows):
        well = compare(np.stack(rows)[healthy], found, structures, path.name)
        output.print(_summary("those without a pathology", well))
        result["without_pathology"] = well
    picture = results / f"phantoms-{name}-against.png"
    real_shown = [(f"real: {file}", label_map) for file, label_map in list(cases.items())[:SHOWN]]
    titles, maps = zip(
        *[pair for pairs in zip(real_shown, shown, strict=False) for pair in pairs], strict=True
    )
    side_by_side(maps, titles, structures, picture, anatomy.camera.azimuth_deg)
    output.print(f"Wrote {picture}")
    return result


def _phantoms(output: Output, name: str, count: int, n: int) -> Iterator[Phantom]:
    from rich.progress import Progress

    from anatomica.data.phantoms import phantom

    with Progress(console=output.console, transient=True) as bar:
        for seed in bar.track(range(count), description=f"{name} phantoms"):
            yield phantom(name, seed, n)


def _table(result: dict[str, Any]) -> Table:
    """One row per feature; a mean more than half a real SD off is marked, as is an SD beyond 0.7 to 1.4."""
    from rich.table import Table

    table = Table(title=f"{result['phantoms']} phantoms against {result['real']} real cases")
    table.add_column("structure")
    table.add_column("feature")
    for head in ("real mean", "SD", "phantoms' mean", "SD", "z", "SD ratio"):
        table.add_column(head, justify="right")
    before = ""
    for x in result["features"]:
        numbers = [f"{x[key]:.1f}" for key in ("real_mean", "real_sd", "mean", "sd")]
        far, wide = abs(x["z"]) > 0.5, not 0.7 <= x["sd_ratio"] <= 1.4
        last = [f"{x['z']:+.2f}{' !' if far else ''}", f"{x['sd_ratio']:.2f}{' !' if wide else ''}"]
        structure = x["structure"] if x["structure"] != before else ""
        table.add_row(structure, f"{x['feature']}, {x['unit']}", *numbers, *last)
        before = x["structure"]
    return table


def _summary(title: str, result: dict[str, Any]) -> str:
    value, low, high = result["one_nna"]
    alike, distance, floor = result["one_nna_alike"], result["frechet"], result["frechet_floor"]
    correlated = result["correlations"]
    return (
        f"{title}: z {result['rms_z']:.2f} root mean square, {result['largest_z']:+.2f} at most; SD ratios "
        f"{result['sd_ratios'][0]:.2f} to {result['sd_ratios'][1]:.2f}; 1-NNA {value:.2f} ({low:.2f} to "
        f"{high:.2f}; {alike[1]:.2f} to {alike[2]:.2f} if alike); Frechet distance {distance[0]:.0f}, of "
        f"real halves {floor[0]:.0f}; correlations differ by {correlated['rms_difference']:.2f}, by "
        f"{correlated['noise']:.2f} if alike"
    )
