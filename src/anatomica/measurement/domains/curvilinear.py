"""Curvilinear control domains: cross-sections along a tube's centreline."""

from __future__ import annotations

import numpy as np
import torch
from jaxtyping import Float
from torch import Tensor

from anatomica.errors import AnatomicaError
from anatomica.measurement.domains.centerline import centerline
from anatomica.measurement.domains.domain import Domains, Grid, invalid, make
from anatomica.measurement.domains.frames import Y_AXIS, orthonormalize, parallel_transport
from anatomica.measurement.domains.volumes import BINARY


def curvilinear_domains(
    S: Float[Tensor, "h w d"],
    grid: Grid,
    extent: Float[Tensor, "3"],
    n_planes: int,
    reference: Float[Tensor, "3"] = Y_AXIS,
    start: Float[Tensor, "3"] = Y_AXIS,
) -> Domains:
    """Algorithm "Curvilinear Domain Computation": n_planes boxes at the middles of equal pieces of the
    centreline, first axis along the tangent, frames carried by parallel transport.

    `start` points to the end that is counted from (anterior by default: an aorta starts at its root).
    """
    mask = (S > BINARY).cpu().numpy()
    try:
        line = centerline(mask, start.numpy())
    except AnatomicaError as error:
        return invalid(n_planes, grid, str(error))
    F_alpha = torch.from_numpy(np.ascontiguousarray(line.tangents))
    beta_0, gamma_0 = orthonormalize(F_alpha[0], reference)
    F_beta, F_gamma = parallel_transport(F_alpha, beta_0, gamma_0)
    i_sub = torch.round((torch.arange(n_planes) + 0.5) / n_planes * (len(F_alpha) - 1)).long()
    C = (torch.from_numpy(np.ascontiguousarray(line.points)) + 0.5) / torch.tensor(S.shape)
    R = torch.stack([F_alpha, F_beta, F_gamma], dim=-1)
    return make(R[i_sub], extent, C[i_sub], grid, [""] * n_planes)
