"""Surfaces of all tissues of a label map against VTK's surface nets and scikit-image's marching cubes."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from time import process_time
from typing import Any, NamedTuple

import numpy as np
from jaxtyping import Float64, Int

from anatomica.anatomy.label_map import LabelMap
from anatomica.data.phantoms import phantom
from anatomica.errors import AnatomicaError
from anatomica.evaluate.bench.timing import Timed, interleaved
from anatomica.evaluate.bench.writing import Tell, write_bench
from anatomica.measurement.homology import betti_numbers
from anatomica.mesh import surface_of
from anatomica.mesh.topology import topology


class Part(NamedTuple):
    """The surface of one tissue, in mm."""

    vertices: Float64[np.ndarray, "v 3"]
    triangles: Int[np.ndarray, "t 3"]


Mesher = Callable[[LabelMap], dict[str, Part]]


def run(
    out: Path,
    anatomies: Sequence[str],
    n: int = 128,
    rounds: int = 3,
    seed: int = 0,
    tell: Tell = lambda _: None,
) -> dict[str, Any]:
    """Mesh one phantom of each anatomy with every contender, write out/mesh.json and out/mesh.md."""
    contenders: dict[str, Mesher] = {
        "anatomica": ours,
        "VTK surface nets": lambda x: surface_nets(x, smooth=True),
        "VTK surface nets, not smoothed": lambda x: surface_nets(x, smooth=False),
        "marching cubes per tissue": marching_cubes,
    }
    found: dict[str, dict[str, Any]] = {}
    for name in anatomies:
        label_map = phantom(name, seed, n).label_map
        timed: Timed = {key: partial(make, label_map) for key, make in contenders.items()}
        seconds = interleaved(timed, rounds, clock=process_time)
        found[name] = {
            key: {"seconds": round(seconds[key], 4)} | quality(make(label_map), label_map)
            for key, make in contenders.items()
        }
        for key, row in found[name].items():
            tell(f"{name}, {key}: {_line(row)}")
    result = {"n": n, "seed": seed, "rounds": rounds, "anatomies": found, "rivals": versions()}
    return write_bench(out, "mesh", result, markdown(result), {})


def ours(label_map: LabelMap) -> dict[str, Part]:
    """One conforming surface, each tissue's part of it."""
    surface = surface_of(label_map)
    return {name: Part(surface.vertices, surface.of(name)) for name in surface.present()}


def _rivals():
    try:
        import skimage.measure
        import vtk  # pyright: ignore[reportMissingImports]
    except ImportError as error:
        raise AnatomicaError(f"the rivals need {error.name}: pip install 'anatomica[bench]'") from None
    return vtk, skimage.measure


def versions() -> dict[str, str]:
    """Of the rivals."""
    from importlib.metadata import version

    vtk, _ = _rivals()
    return {"vtk": vtk.vtkVersion.GetVTKVersion(), "scikit-image": version("scikit-image")}


def surface_nets(label_map: LabelMap, smooth: bool) -> dict[str, Part]:
    """vtkSurfaceNets3D with its own defaults of smoothing; a rim of background closes what the grid cuts."""
    vtk, _ = _rivals()
    from vtk.util.numpy_support import numpy_to_vtk, vtk_to_numpy  # pyright: ignore[reportMissingImports]

    table = label_map.table
    padded = np.pad(label_map.array, 1).astype(np.float32)
    image = vtk.vtkImageData()
    image.SetDimensions(*padded.shape)
    image.SetSpacing(*label_map.spacing_mm)
    image.GetPointData().SetScalars(numpy_to_vtk(padded.ravel(order="F"), deep=True))
    nets = vtk.vtkSurfaceNets3D()
    nets.SetInputData(image)
    nets.SetBackgroundLabel(0)
    for i, name in enumerate(label_map.present()):
        nets.SetValue(i, table.id_of(name))
    nets.SetSmoothing(smooth)
    nets.SetOutputMeshTypeToTriangles()
    nets.Update()
    made = nets.GetOutput()
    points = vtk_to_numpy(made.GetPoints().GetData()).astype(np.float64)
    triangles = vtk_to_numpy(made.GetPolys().GetConnectivityArray()).reshape(-1, 3)
    sides = vtk_to_numpy(made.GetCellData().GetArray("BoundaryLabels")).astype(np.int64)
    parts = {}
    for name in label_map.present():
        first, second = (sides[:, k] == table.id_of(name) for k in range(2))
        parts[name] = _outwards(Part(points, np.concatenate([triangles[first], triangles[second][:, ::-1]])))
    return parts


def marching_cubes(label_map: LabelMap) -> dict[str, Part]:
    """scikit-image's marching cubes (Lewiner's) of each tissue's mask; neighbours share nothing."""
    _, measure = _rivals()
    parts = {}
    for name in label_map.present():
        mask = np.pad(label_map.mask(name), 1).astype(np.float32)
        vertices, triangles, *_ = measure.marching_cubes(mask, 0.5, spacing=tuple(label_map.spacing_mm))
        parts[name] = _outwards(Part(vertices.astype(np.float64), triangles.astype(np.int64)))
    return parts


def _outwards(part: Part) -> Part:
    """The same surface with its normals outwards, whichever way a library counts."""
    return part if _volume_mm3(part) >= 0 else Part(part.vertices, part.triangles[:, ::-1])


def _volume_mm3(part: Part) -> float:
    centred = part.vertices - part.vertices[part.triangles.ravel()].mean(axis=0)
    a, b, c = (centred[part.triangles[:, k]] for k in range(3))
    return float(np.einsum("ij,ij->i", a, np.cross(b, c)).sum()) / 6.0


def quality(parts: dict[str, Part], label_map: LabelMap) -> dict[str, Any]:
    """Volume errors, tissues with open edges and their number, tissues with the voxels' Betti numbers."""
    errors, open_edges, right = [], [], 0
    for name in label_map.present():
        voxels = label_map.volume_ml(name)
        if name not in parts:
            errors.append(1.0)
            continue
        errors.append(abs(_volume_mm3(parts[name]) / 1000 / voxels - 1))
        found = topology(*parts[name])
        open_edges.append(found.open_edges)
        right += found.betti == betti_numbers(label_map.mask(name))
    return {
        "tissues": len(errors),
        "triangles": sum(len(p.triangles) for p in parts.values()),
        "mean_volume_error": float(np.mean(errors)),
        "worst_volume_error": float(np.max(errors)),
        "open_edges": int(np.sum(open_edges)),
        "tissues_with_open_edges": int(np.sum(np.array(open_edges) > 0)),
        "tissues_with_right_betti": int(right),
    }


def _line(row: dict[str, Any]) -> str:
    return (
        f"{row['seconds']:.3f} s, volume error {100 * row['mean_volume_error']:.3f} % on average and "
        f"{100 * row['worst_volume_error']:.3f} % at worst, {row['open_edges']} open edges, Betti numbers of "
        f"{row['tissues_with_right_betti']} of {row['tissues']} tissues right"
    )


def markdown(result: dict[str, Any]) -> str:
    rivals = ", ".join(f"{name} {version}" for name, version in result["rivals"].items())
    lines = [
        f"Surfaces of all tissues of a phantom (seed {result['seed']}) at {result['n']}^3, median of "
        f"{result['rounds']} interleaved rounds in seconds of a core; {rivals}. Volume errors are against "
        "the voxels; an edge is open if the tissue's triangles there do not come in pairs of opposite "
        "direction.",
        "",
        "| anatomy | mesher | seconds | times ours | volume error, mean | worst | open edges | Betti right |",
        "|---|---|---:|---:|---:|---:|---:|---:|",
    ]
    for name, rows in result["anatomies"].items():
        base = rows["anatomica"]["seconds"]
        lines += [
            f"| {name} | {key} | {row['seconds']:.3f} | {row['seconds'] / base:.2f} | "
            f"{100 * row['mean_volume_error']:.3f} % | {100 * row['worst_volume_error']:.3f} % | "
            f"{row['open_edges']} | {row['tissues_with_right_betti']} of {row['tissues']} |"
            for key, row in rows.items()
        ]
    return "\n".join(lines) + "\n"
