"""From a spec's domain to placed control domains, computed from a reference anatomy."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
import torch
from scipy.spatial.transform import Rotation
from torch import Tensor

from anatomica.anatomy.frame import Frame
from anatomica.measurement.domains.curvilinear import curvilinear_domains
from anatomica.measurement.domains.domain import Domains
from anatomica.measurement.domains.frames import Y_AXIS, Z_AXIS
from anatomica.measurement.domains.interface import interface_domains
from anatomica.measurement.domains.rays import cylindrical_domains, spherical_domains
from anatomica.measurement.domains.volumes import box_domain, cartesian_domain, global_domain
from anatomica.spec import spec

StructureMap = Callable[[Sequence[str]], Tensor]
"""Tissue names -> the reference's structure map (h, w, d) in [0, 1]."""


def needs_reference(domain: spec.DomainSpec) -> bool:
    """Whether the domain is computed from an anatomy (all families but the global one and a given box)."""
    return domain.family not in ("global", "box")


def place(domain: spec.DomainSpec, structure: Sequence[str], frame: Frame, S: StructureMap | None) -> Domains:
    """The control domains that a spec asks for, computed from the reference anatomy `S` in its frame."""
    grid = domain.grid
    if isinstance(domain, spec.GlobalDomain):
        return global_domain(grid)
    if isinstance(domain, spec.BoxDomain):
        centre = torch.from_numpy(frame.to_unit(np.array(domain.centre_mm)))[None]
        size = torch.tensor([domain.size_mm], dtype=torch.float64) / frame.edge_mm
        R = Rotation.from_euler("xyz", domain.rotation_deg, degrees=True).as_matrix()
        return box_domain(centre, size, torch.from_numpy(R)[None], grid)
    if S is None:
        raise ValueError(f"a {domain.family} domain is computed from a reference anatomy")
    if isinstance(domain, spec.CartesianDomain):
        return cartesian_domain(S(domain.around or structure), grid, domain.margin_mm / frame.edge_mm)
    extent = torch.tensor(domain.size, dtype=torch.float64) * frame.paper_voxel
    default = Y_AXIS if isinstance(domain, spec.CurvilinearDomain) else Z_AXIS
    reference = default if domain.reference is None else torch.tensor(domain.reference, dtype=torch.float64)
    if isinstance(domain, spec.InterfaceDomain):
        # Given in paper voxels; on another grid it keeps its size, at least the direct neighbours.
        k_dil = 2 * max(1, round((domain.dilation - 1) / 2 * frame.paper_voxel * frame.n)) + 1
        sides = interface_domains(S(domain.first), S(domain.second), grid, extent, k_dil, reference)
        return sides[0 if domain.side == "first" else 1]
    if isinstance(domain, spec.CurvilinearDomain):
        return curvilinear_domains(S(domain.along or structure), grid, extent, domain.planes, reference)
    if isinstance(domain, spec.SphericalDomain):
        return spherical_domains(
            S(domain.around or structure), grid, extent, domain.rays, reference=reference
        )
    return cylindrical_domains(
        S(domain.around or structure),
        grid,
        extent,
        domain.levels,
        domain.angles,
        axis=domain.axis,
        reference=reference,
    )
