"""What is asked of a model: a spec's constraints, placed in the model's own frame and checked."""

from __future__ import annotations

from collections.abc import Sequence

from anatomica.anatomy.label_map import LabelMap, to_cube
from anatomica.errors import AnatomicaError
from anatomica.measurement.placing import Resolved, resolve
from anatomica.prior.zoo import Model
from anatomica.spec.spec import Spec


def resolve_for(model: Model, spec: Spec, reference: LabelMap | None = None) -> tuple[Resolved, ...]:
    """A spec's constraints in the model's own frame, whose centre is 0 mm.

    Domains, and the targets that the spec leaves to `Constraint.match`, come from `reference` (any label map
    of the anatomy).
    """
    spec = spec.of(model.about)
    frame = model.frame
    cube = None
    if reference is not None:
        array = to_cube(reference, frame.anatomy, model.n).array
        cube = LabelMap(array, frame.affine, reference.table)
    resolved = resolve(spec, frame, cube)
    if not any(bool(r.domains.valid.any()) for r in resolved):
        reasons = "; ".join(f"{r.constraint.name}: {r.domains.reasons[0]}" for r in resolved)
        raise AnatomicaError(f"the reference has no valid domain for {spec.name!r} ({reasons})")
    free = [r.constraint.name for r in resolved if not r.wanted.any_moment and r.wanted.betti is None]
    if free:
        raise AnatomicaError(
            f"constraint {free[0]!r} has no target: give a number, or a reference (--like FILE) to match"
        )
    return resolved


def refuse_unseen(resolved: Sequence[Resolved]) -> None:
    """The paper's update sees only quantities with a weight: a constraint on others would have no slope."""
    for r in resolved:
        if r.wanted.betti is None and all(q.weight is None for q, _ in r.wanted.rows):
            asked = " and ".join(q.title for q, _ in r.wanted.rows)
            raise AnatomicaError(
                f"constraint {r.constraint.name!r} asks only for {asked}, which the gradient solver does "
                "not see; use --solver gauss-newton"
            )
