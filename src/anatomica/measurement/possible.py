"""Targets that no label map can have: refused before sampling. What is only unusual is not its business.

A structure inside a box has at most the volume that the box has in the cube, its centroid in it, at most half
its diagonal as spread, and no more pieces than the box has room for.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from torch import Tensor

from anatomica.anatomy.frame import Frame
from anatomica.errors import AnatomicaError
from anatomica.measurement.domains.domain import template
from anatomica.measurement.placing import Resolved
from anatomica.spec.quantities import BETTI, BY_KEY, equivalent_diameter


def refuse_impossible(resolved: Sequence[Resolved], frame: Frame) -> None:
    """An error that names the first constraint and quantity that no label map of the frame can meet."""
    for r in resolved:
        for k in r.valid_domains:
            for reason in _impossible(r, k, frame):
                where = f" {k + 1}" if r.domains.count > 1 else ""
                raise AnatomicaError(f"constraint {r.constraint.name!r}{where}: {reason}")


def _share_inside(R: Tensor, s: Tensor, t: Tensor) -> float:
    """Share of a box that is inside the cube, never too small: of 16^3 points, those within half a step."""
    points = template((16, 16, 16)).to(s).reshape(-1, 3) * s @ R.T + t
    step = float(s.norm()) / 32
    return float(((points >= -step) & (points <= 1 + step)).all(-1).double().mean())


def _impossible(r: Resolved, k: int, frame: Frame) -> Iterator[str]:
    s, t, R = r.domains.s[k], r.domains.t[k], r.domains.R[k]
    room = min(float(s.prod()) * _share_inside(R, s, t), 1.0)
    if room == 0:
        yield "its domain lies outside of the cube, where nothing is generated"
        return
    wanted = {key: value[k] for key, value in r.wanted.values.items()}
    slack = {key: 1 + r.constraint.tolerance.of(BY_KEY[key]) / 100 for key in ("mass", "spread")}
    if "mass" in wanted and float(wanted["mass"]) > room * slack["mass"]:
        asked, most = frame.to_ml(float(wanted["mass"])), frame.to_ml(room)
        yield f"asks for {asked:.4g} mL in a domain of {most:.4g} mL"
    if "centroid" in wanted:
        # Where the centroid lies between the box's faces, in box lengths: from -1/2 to 1/2.
        local = (R.T @ (wanted["centroid"] - t)) / s
        beyond = float(((local.abs() - 0.5).clamp_min(0) * s).norm()) * frame.edge_mm
        if beyond > r.constraint.tolerance.of(BY_KEY["centroid"]):
            yield f"asks for a centroid that lies {beyond:.4g} mm outside of its domain"
    if "spread" in wanted and float(wanted["spread"]) > float(s.norm()) / 2 * slack["spread"]:
        asked, most = float(wanted["spread"]) * frame.edge_mm, float(s.norm()) / 2 * frame.edge_mm
        yield f"asks for a spread of {asked:.4g} mm in a domain where it is at most {most:.4g} mm"
    if "diameter" in wanted:
        normal = r.domains.grid.index(min(r.domains.grid))
        most = float(equivalent_diameter((s.prod() / s[normal]).reshape(1))[0]) * frame.edge_mm
        asked = float(wanted["diameter"]) * frame.edge_mm
        if asked > most + r.constraint.tolerance.of(BY_KEY["diameter"]):
            yield f"asks for a diameter of {asked:.4g} mm in a section of at most {most:.4g} mm"
    if r.wanted.betti is not None:
        voxels = max(1.0, room * frame.n**3)
        for name, count in zip(BETTI, r.wanted.betti.numbers, strict=True):
            # A piece takes a voxel and a gap; a loop or a void takes more.
            if count is not None and count > voxels / 2 + 1:
                yield f"asks for {count} {name} in a domain of {voxels:.0f} voxels"
