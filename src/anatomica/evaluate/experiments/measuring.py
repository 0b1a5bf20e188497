"""What is measured of one sample against its target: plain numbers for a results file."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch

from anatomica.anatomy.catalogue import anatomy
from anatomica.anatomy.label_map import LabelMap
from anatomica.evaluate.experiments.targets import Target
from anatomica.evaluate.metrics.fidelity import fidelity
from anatomica.evaluate.metrics.precision import counted
from anatomica.measurement.certificate import all_met, certificate
from anatomica.measurement.moments import Moments
from anatomica.measurement.placing import measure_in, structure_map
from anatomica.spec.spec import Spec


def measure_sample(label_map: LabelMap, spec: Spec, target: Target) -> dict[str, Any]:
    """Fidelity to the target's moments, Betti numbers raw and without specks, certificate, volumes.

    Everything is measured hard, on the argmax, in the target's own domains.
    """
    checks = certificate(label_map, target.resolved, anatomy(spec.anatomy))
    out: dict[str, Any] = {
        "met": all_met(checks),
        "checks_met": sum(c.met for c in checks),
        "checks": len(checks),
        "volumes_ml": {t: round(label_map.volume_ml(t), 4) for t in label_map.present()},
    }
    if target.reference is not None:
        out["fidelity"] = moments_errors(label_map, target)
    found = structure_map(label_map)
    for r in target.resolved:
        if r.wanted.betti is not None:
            raw, clean = counted(found(r.constraint.structure).numpy() > 0.5)
            out["betti"], out["betti_without_specks"] = list(raw), list(clean)
    return out


def moments_errors(label_map: LabelMap, target: Target) -> dict[str, float]:
    """L1 errors of mass, centroid and covariance over all substructures of all constraints, in cube units;
    and the share of substructures that the label map does not have."""
    assert target.reference is not None
    wanted, measured = (
        _joined([measure_in(S(r.constraint.structure), r.domains) for r in target.resolved])
        for S in (structure_map(target.reference), structure_map(label_map))
    )
    valid = torch.cat([r.domains.valid for r in target.resolved])
    found = fidelity(wanted, measured, valid)
    errors = {name: float(f"{float(value):.6g}") for name, value in found._asdict().items()}
    return errors | {"absent": float((valid & (measured.mass == 0)).sum() / valid.sum())}


def _joined(parts: Sequence[Moments]) -> Moments:
    return Moments(
        torch.cat([m.mass for m in parts]),
        torch.cat([m.centroid for m in parts]),
        torch.cat([m.covariance for m in parts]),
    )
