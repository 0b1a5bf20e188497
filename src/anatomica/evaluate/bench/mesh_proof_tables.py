"""Proofs of many meshes counted, as lines and as tables."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from statistics import median
from typing import Any

from anatomica.mesh.proof import LARGE_ML

COUNTED = ("holds", "closed", "betti", "two_owners", "manifold")


def summary(rows: Sequence[dict[str, Any]]) -> dict[str, Any]:
    """Counts and extremes over the samples of one anatomy."""
    all_tissues = [t for row in rows for t in row["tissues"].values()]
    large = [t["error"] for t in all_tissues if t["ml"] > LARGE_ML]
    small = [t["error"] for t in all_tissues if t["ml"] <= LARGE_ML]
    return {
        "samples": len(rows),
        **{key: sum(row[key] for row in rows) for key in COUNTED},
        "turned": sum(row["turned"] for row in rows),
        "crossings": sum(row["crossings"] for row in rows),
        "worst_error_large": max(large, default=None),
        "worst_error_small": max(small, default=None),
        "large": len(large),
        "small": len(small),
        "tissues": by_tissue(rows),
        "smallest_angle_deg": min(row["angle"] for row in rows),
        "triangles": median(row["triangles"] for row in rows),
        "seconds": round(median(row["seconds"] for row in rows), 3),
        "not_manifold_seeds": [row["seed"] for row in rows if not row["manifold"]],
        "failed": {str(row["seed"]): row["reasons"] for row in rows if not row["holds"]},
    }


def by_tissue(rows: Sequence[dict[str, Any]]) -> dict[str, dict[str, float]]:
    """Of each tissue how many samples have it, its smallest volume and its worst volume error."""
    names = list(dict.fromkeys(name for row in rows for name in row["tissues"]))
    found = {name: [row["tissues"][name] for row in rows if name in row["tissues"]] for name in names}
    return {
        name: {
            "samples": len(own),
            "least_ml": min(t["ml"] for t in own),
            "worst_error": max(t["error"] for t in own),
        }
        for name, own in found.items()
    }


def line(row: dict[str, Any]) -> str:
    return (
        f"{row['holds']} of {row['samples']} proofs hold; closed {row['closed']}, Betti numbers of the "
        f"voxels {row['betti']}, all faces with two owners {row['two_owners']}, turned over {row['turned']}, "
        f"crossing pairs {row['crossings']}, worst volume error {_share(row['worst_error_large'])} above "
        f"{LARGE_ML:g} mL and {_share(row['worst_error_small'])} below, nowhere touching itself "
        f"{row['manifold']}, {row['seconds']:.2f} s of a core"
    )


def tet_line(row: dict[str, Any]) -> str:
    worst = max(layer["volume_error"] for layer in row["layers"])
    return (
        f"{row['tetrahedra']:,} tetrahedra of {len(row['layers'])} tissues, "
        f"{'the proof holds' if row['holds'] else 'THE PROOF DOES NOT HOLD'}; worst volume error "
        f"{100 * worst:.3f} %, smallest dihedral angle {row['smallest_dihedral_deg']:.1f} degrees, "
        f"{100 * row['flat_share']:.3f} % below 5; {row['seconds'] / 60:.1f} minutes "
        f"({row['cpu_seconds'] / 60:.1f} of a core), {row['peak_mb']:,.0f} MB"
    )


def markdown(result: dict[str, Any]) -> str:
    """Surfaces, their tissues, and tetrahedra if there are any."""
    head = (
        f"Surfaces of {result['samples']} unconditional samples per anatomy (seeds from "
        f"{result['first_seed']}) at {result['n']}^3, measured against their label maps."
    )
    if len(set(result["commits"].values())) > 1:
        listed = ", ".join(f"{name} {of}" for name, of in result["commits"].items())
        head += f" Not all are of one commit: {listed}."
    columns = ("anatomy", "vertices from", "proof holds", "closed, oriented", "Betti numbers of the voxels")
    columns += ("two owners everywhere", "turned over", "crossing pairs")
    columns += (f"worst volume error above {LARGE_ML:g} mL", "below", "touches itself nowhere")
    columns += ("smallest angle", "triangles", "seconds of a core")
    lines = [head, "", *_table(columns, _surface_rows(result["surfaces"]))]
    columns = ("anatomy", "tissue", "samples", "smallest mL", "worst volume error, field", "voxels")
    lines += ["", "The same by tissue.", "", *_table(columns, _tissue_rows(result["surfaces"]), words=2)]
    if result["filled"]:
        columns = ("anatomy", "seed", "tissues", "tetrahedra", "inverted", "faces at holes", "strays")
        columns += ("worst volume error", "smallest dihedral angle", "below 5 degrees", "proof holds")
        columns += ("minutes", "of a core", "MB")
        lines += ["", "Tetrahedra in the surfaces on the field's border, default options.", ""]
        lines += _table(columns, _filled_rows(result["filled"]))
    return "\n".join(lines) + "\n"


def _surface_rows(surfaces: dict[str, Any]) -> Iterable[list[str]]:
    for name, ways in surfaces.items():
        for way, row in ways.items():
            yield [
                name,
                way,
                *(f"{row[key]} of {row['samples']}" for key in COUNTED[:-1]),
                str(row["turned"]),
                str(row["crossings"]),
                _share(row["worst_error_large"]),
                _share(row["worst_error_small"]),
                f"{row['manifold']} of {row['samples']}",
                f"{row['smallest_angle_deg']:.1f}",
                f"{row['triangles']:,.0f}",
                f"{row['seconds']:.2f}",
            ]


def _tissue_rows(surfaces: dict[str, Any]) -> Iterable[list[str]]:
    for name, ways in surfaces.items():
        first, *others = (row["tissues"] for row in ways.values())
        for tissue, own in first.items():
            errors = [own["worst_error"], *(other[tissue]["worst_error"] for other in others)]
            least = f"{own['least_ml']:.3g}"
            yield [name, tissue, str(own["samples"]), least, *map(_share, errors)]


def _filled_rows(filled: dict[str, Any]) -> Iterable[list[str]]:
    for name, rows in filled.items():
        for row in rows:
            yield [
                name,
                str(row["seed"]),
                str(len(row["layers"])),
                f"{row['tetrahedra']:,}",
                str(row["inverted"]),
                str(row["missing_faces"]),
                str(sum(layer["strays"] for layer in row["layers"])),
                f"{100 * max(layer['volume_error'] for layer in row['layers']):.3f} %",
                f"{row['smallest_dihedral_deg']:.1f}",
                f"{100 * row['flat_share']:.3f} %",
                "yes" if row["holds"] else "no",
                f"{row['seconds'] / 60:.1f}",
                f"{row['cpu_seconds'] / 60:.1f}",
                f"{row['peak_mb']:,.0f}",
            ]


def _share(error: float | None) -> str:
    """A share in percent; a dash if there is none."""
    return "-" if error is None else f"{100 * error:.4f} %"


def _table(columns: Sequence[str], rows: Iterable[Sequence[str]], words: int = 1) -> list[str]:
    """A Markdown table whose first columns are words and whose others are numbers."""
    sides = [*["---"] * words, *["---:"] * (len(columns) - words)]
    return ["| " + " | ".join(cells) + " |" for cells in (columns, sides, *rows)]
