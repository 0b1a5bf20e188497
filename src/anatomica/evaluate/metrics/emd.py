"""Earth Mover's Distance of point clouds by the debiased Sinkhorn divergence, many pairs at a time.

OT_eps(a, b) is entropic transport with the Euclidean distance as cost; the divergence
S_eps(a, b) = OT_eps(a, b) - OT_eps(a, a) / 2 - OT_eps(b, b) / 2 is zero for equal clouds and becomes the EMD
as the blur eps goes to 0 (Feydy et al. 2019).
"""

from __future__ import annotations

import math

import torch
from jaxtyping import Float
from torch import Tensor

BLUR = 0.02
"""Default blur as a share of the clouds' RMS radius: ranks pairs as the exact distance does."""
PAIRS = 16
"""Pairs that are solved together: their matrices stay in the processor's cache."""


def emd(
    x: Float[Tensor, "b p 3"], y: Float[Tensor, "b q 3"], blur: float | None = None
) -> Float[Tensor, " b"]:
    """S_eps of pairs of clouds with equal weights; `blur` is eps in the clouds' own unit."""
    eps = default_blur(torch.cat([x, y], dim=1)) if blur is None else blur
    return transport_cost(x, y, eps) - (transport_cost(x, x, eps) + transport_cost(y, y, eps)) / 2


def default_blur(clouds: Float[Tensor, "b p 3"]) -> float:
    """BLUR times the median RMS radius, but never zero."""
    radius = (clouds - clouds.mean(1, keepdim=True)).square().sum(-1).mean(1).sqrt()
    return max(BLUR * float(radius.median()), 1e-6)


def transport_cost(
    x: Float[Tensor, "b p 3"], y: Float[Tensor, "b q 3"], eps: float, inner: int = 5
) -> Float[Tensor, " b"]:
    """OT_eps by Sinkhorn's iteration with eps halved from level to level.

    Within a level it works with the kernel exp((f + g - C) / eps), which two matrix-vector products update,
    instead of in logarithms, which cost ten times more; potentials are absorbed between levels, so that
    nothing underflows (Schmitzer 2019).
    """
    parts = [_sinkhorn(a, b, eps, inner) for a, b in zip(x.split(PAIRS), y.split(PAIRS), strict=True)]
    return torch.cat(parts)


def _sinkhorn(x: Tensor, y: Tensor, eps_end: float, inner: int) -> Tensor:
    C = torch.cdist(x, y, compute_mode="donot_use_mm_for_euclid_dist")
    p, q = C.shape[1:]
    f, g = C.new_zeros(len(C), p), C.new_zeros(len(C), q)
    eps = max(float(C.max()) / 2, eps_end)
    while True:
        K = ((f[:, :, None] + g[:, None] - C) / eps).clamp_(-60, 60).exp_()
        u, v = torch.ones_like(f), torch.ones_like(g)
        for _ in range(inner if eps > eps_end else 2 * inner):
            u = 1 / (p * (K @ v[:, :, None])[:, :, 0])
            v = 1 / (q * (u[:, None] @ K)[:, 0])
        f, g = f + eps * u.log(), g + eps * v.log()
        if eps <= eps_end:
            # The dual value; f and g are relative to counting, the weights are 1/p and 1/q.
            return f.mean(1) + g.mean(1) + eps * math.log(p * q)
        eps = max(eps / 2, eps_end)


def sliced_bound(a: Float[Tensor, "m p 3"], b: Float[Tensor, "k p 3"]) -> Float[Tensor, "m k"]:
    """A lower bound of the exact EMD of clouds of the same size: the largest of 13 one-dimensional ones.

    On a line transport is sorting, so a bound costs a thousandth of a distance.
    """
    grid = [(i, j, k) for i in (-1, 0, 1) for j in (-1, 0, 1) for k in (-1, 0, 1)]
    half = torch.tensor(grid[14:], dtype=a.dtype)
    axes = half / half.norm(dim=1, keepdim=True)
    bound = a.new_zeros(len(a), len(b))
    for axis in axes:
        first, second = ((x @ axis).sort(dim=1).values for x in (a, b))
        bound = torch.maximum(bound, torch.cdist(first, second, p=1.0) / a.shape[1])
    return bound
