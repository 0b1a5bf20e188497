"""Constraints that get in each other's way: said before sampling, and tried all the same.

A label map gives every voxel to one tissue, so the volume of a union is the sum of its tissues' volumes, and
nothing is more compact than a ball.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator, Sequence

import numpy as np
from scipy.optimize import linprog

from anatomica.anatomy.frame import Frame
from anatomica.measurement.placing import Resolved
from anatomica.spec.quantities import BY_KEY
from anatomica.spec.spec import CartesianDomain, GlobalDomain


def conflicts(resolved: Sequence[Resolved], frame: Frame) -> list[str]:
    """One sentence for each pair or set of targets that no label map can meet together."""
    return [*_twice(resolved, frame), *_volumes(resolved, frame), *_too_compact(resolved, frame)]


def _twice(resolved: Sequence[Resolved], frame: Frame) -> Iterator[str]:
    """Two constraints on one structure in one place that ask for different values."""
    for a, b in itertools.combinations(resolved, 2):
        if a.selection != b.selection or not _same_place(a, b):
            continue
        names = f"{a.constraint.name!r} and {b.constraint.name!r}"
        for q, wanted in a.wanted.rows:
            other = b.wanted.values.get(q.key)
            if other is None or other.shape != wanted.shape:
                continue
            off = q.error(other, wanted, frame.edge_mm, a.constraint.mass_threshold)
            allowed = a.constraint.tolerance.of(q) + b.constraint.tolerance.of(q)
            if float(off.max()) > allowed:
                yield f"{names} ask for the same {q.title} in the same place, but for different values"
        if a.wanted.betti is not None and b.wanted.betti is not None:
            pairs = zip(a.wanted.betti.numbers, b.wanted.betti.numbers, strict=True)
            if any(x is not None and y is not None and x != y for x, y in pairs):
                yield f"{names} ask for different Betti numbers of one structure in the same place"


def _same_place(a: Resolved, b: Resolved) -> bool:
    first, second = a.domains, b.domains
    return first.s.shape == second.s.shape and all(
        bool(((x - y).abs() < 1e-6).all())
        for x, y in ((first.s, second.s), (first.t, second.t), (first.R, second.R))
    )


def _volumes(resolved: Sequence[Resolved], frame: Frame) -> Iterator[str]:
    """Volumes of whole tissues that do not add up: x >= 0, sum x <= 1, and each union within its tolerance.

    A linear programme finds the least total violation; who is violated in it is named.
    """
    rows = [(r, float(r.wanted.values["mass"][0])) for r in resolved if _whole_volume(r)]
    if len(rows) < 2:
        return
    tissues = sorted({c for r, _ in rows for c in r.selection})
    count, total = len(rows), len(tissues)
    A, b = [np.r_[np.ones(total), np.zeros(count)]], [1.0]
    for i, (r, mass) in enumerate(rows):
        member = np.array([float(c in r.selection) for c in tissues])
        excess = np.zeros(count)
        excess[i] = -1.0
        percent = r.constraint.tolerance.of(BY_KEY["mass"])
        allowed = percent / 100 * max(mass, r.constraint.mass_threshold)
        A += [np.r_[member, excess], np.r_[-member, excess]]
        b += [mass + allowed, -(mass - allowed)]
    found = linprog(np.r_[np.zeros(total), np.ones(count)], A_ub=np.array(A), b_ub=np.array(b))
    if found.status != 0 or found.fun < 1e-9:
        return
    names = ", ".join(repr(r.constraint.name) for r, _ in rows)
    least = frame.to_ml(float(found.fun))
    yield f"the volumes of {names} do not add up: together they are at least {least:.4g} mL off"


def _whole_volume(r: Resolved) -> bool:
    """Whether a constraint asks for the volume of all of its structure, wherever it is."""
    domain = r.constraint.domain
    own = isinstance(domain, CartesianDomain) and (domain.around or r.constraint.structure)
    whole = isinstance(domain, GlobalDomain) or own == r.constraint.structure
    return whole and "mass" in r.wanted.values and bool(r.domains.valid[0])


def _too_compact(resolved: Sequence[Resolved], frame: Frame) -> Iterator[str]:
    """A spread below that of a ball of the wanted volume, which is sqrt(3/5) of its radius."""
    for r in resolved:
        values = r.wanted.values
        if "mass" not in values or "spread" not in values or min(r.domains.grid) == 1:
            continue  # a section has no volume to be compact with
        for k in r.valid_domains:
            ball = math.sqrt(3 / 5) * (3 * float(values["mass"][k]) / (4 * math.pi)) ** (1 / 3)
            asked = float(values["spread"][k])
            slack = 1 - r.constraint.tolerance.of(BY_KEY["spread"]) / 100
            slack *= 1 - r.constraint.tolerance.of(BY_KEY["mass"]) / 300
            if asked < ball * slack:
                yield (
                    f"{r.constraint.name!r} asks for a spread of {asked * frame.edge_mm:.4g} mm, but its "
                    f"volume has at least {ball * frame.edge_mm:.4g} mm, which is a ball's"
                )
                break
