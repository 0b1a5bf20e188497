"""The torch face: births and deaths that carry gradients to the voxels they come from."""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

from anatomica.measurement.homology.persistence import Construction, run_kernel


class PersistencePairs(NamedTuple):
    """The persistence pairs of a batch of volumes, end to end: row i of every tensor is one class.

    As ``Diagram``, with the number of the volume in ``batch``; rows are grouped by volume, then by dimension.
    ``birth`` and ``death`` are gathered from the volumes: a loss of them reaches the two voxels of each pair.
    """

    batch: Int[Tensor, " n"]
    dim: Int[Tensor, " n"]
    birth: Float[Tensor, " n"]
    death: Float[Tensor, " n"]
    birth_voxel: Int[Tensor, " n"]
    death_voxel: Int[Tensor, " n"]
    essential: Bool[Tensor, " n"]

    @property
    def persistence(self) -> Float[Tensor, " n"]:
        return self.birth - self.death


def persistence_pairs(
    S: Float[Tensor, "b x y z"],
    dims: Sequence[int] = (0, 1, 2),
    construction: Construction = "V",
    min_persistence: float = 0.0,
    clamp: float | None = None,
    *,
    top: int | None = None,
    threads: int | None = None,
) -> PersistencePairs:
    """Persistence pairs of each volume of a batch, differentiable, on the device of S.

    The arguments are those of ``persistence``.  The pairing is found on the CPU from the detached values;
    births and deaths are then gathered from S itself, also under ``clamp``: a clamped plateau would pass
    no gradient, and the original value at the plateau's extreme voxel is within ``clamp`` of 0 or 1.
    """
    volumes = S.detach().to("cpu")
    if volumes.dtype not in (torch.float32, torch.float64):
        volumes = volumes.float()
    counts, dim, _, _, birth_voxel, death_voxel, essential = run_kernel(
        list(volumes.numpy()), dims, construction, min_persistence, clamp, top, threads
    )
    batch = torch.from_numpy(np.repeat(np.arange(len(counts)), counts)).to(S.device)
    birth_at, death_at = (torch.from_numpy(voxels).to(S.device) for voxels in (birth_voxel, death_voxel))
    values = S.flatten(1)
    return PersistencePairs(
        batch=batch,
        dim=torch.from_numpy(dim).to(S.device),
        birth=values[batch, birth_at],
        death=values[batch, death_at],
        birth_voxel=birth_at,
        death_voxel=death_at,
        essential=torch.from_numpy(essential).to(S.device),
    )
