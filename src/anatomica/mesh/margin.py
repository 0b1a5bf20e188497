"""Vertices on the zero margin of a neural field: the border that the label map is a sampling of.

Between two labels the border is where their logits are equal; on a line of three, all three are; at a point
of four, all four. Newton's method takes each vertex there from where relaxation left it.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import torch
from jaxtyping import Float, Float32, UInt8
from torch import Tensor

from anatomica.anatomy.label_map import LabelMap
from anatomica.mesh.surface import Points, Surface, surface_with
from anatomica.prior.field import CHUNK_POINTS
from anatomica.prior.zoo import Model

Logits = Callable[[Float[Tensor, "p 3"]], Float[Tensor, "p C"]]
CLOSE = 0.002
"""A second Newton step, with the slopes of the first, is for vertices that are further (in voxels) from the
border than this after the first. Distance from the border over the vertices of a shipped heart (seed 0,
128^3), in voxels, median and 95th percentile: 0.056 and 0.234 as relaxed, 0.0006 and 0.055 after one step,
below 0.00005 and 0.051 after two and after three. The rest is where the border runs through the outermost
twentieth of a cell, which no vertex may enter."""
REACH = 0.1
"""Distance in voxels over which the margin's slope is measured."""
LOST = 0.2
"""A vertex whose margin says that the border is still further away than this (in voxels) goes back to where
relaxation left it: there the label map has another label than the field, or the border is not in this
cell."""


def surface_of_latent(label_map: LabelMap, model: Model, latent: Float[Tensor, "c h w d"]) -> Surface:
    """The surface of a label map that was decoded from a standardised latent, on the field's own border.

    The label map may be on any grid of the model's cube, and repaired: where it disagrees with the field its
    voxels decide. Volumes are those of the voxels.
    """
    field = model.autoencoder.field
    with torch.no_grad():
        features = field.prepare(model.scaler.restore(latent[None].to(model.device)))

    def logits(r: Float[Tensor, "p 3"]) -> Float[Tensor, "p C"]:
        return torch.cat([field.at(features, p[None])[0] for p in r.to(model.device).split(CHUNK_POINTS)])

    return surface_of_field(label_map, logits)


def surface_of_field(label_map: LabelMap, logits: Logits) -> Surface:
    """The same for any field: logits of the table's labels at points of the cube [0, 1]^3."""

    def move(mesher, relaxed: Points) -> Points:
        return to_margin(relaxed, mesher.low, mesher.high, mesher.labels, label_map.shape, logits)

    return surface_with(label_map, move)


@torch.no_grad()
def to_margin(
    start: Points,
    low: Float32[np.ndarray, "p 3"],
    high: Float32[np.ndarray, "p 3"],
    labels: UInt8[np.ndarray, "p 8"],
    shape: tuple[int, int, int],
    logits: Logits,
) -> Points:
    """Points (voxels) moved to where the logits of the labels around them are equal, each within its box."""
    x, least, most = (torch.from_numpy(a).double() for a in (start, low, high))
    size = torch.tensor(shape, dtype=torch.float64)
    index = torch.from_numpy(np.sort(labels, axis=1).astype(np.int64))
    # One equation for each label after the first: its logit is that of the one before it.
    new = index[:, 1:] != index[:, :-1]

    def margins(at: Tensor, of: Tensor | slice = slice(None)) -> Tensor:
        values = logits(((at + 0.5) / size).float()).double().gather(1, index[of])
        return (values[:, 1:] - values[:, :-1]) * new[of]

    here = margins(x)
    slope = torch.stack([(margins(x + REACH * e) - here) / REACH for e in torch.eye(3).double()], -1)
    x = x + _within(here, slope, least - x, most - x)
    here = margins(x)
    far = (_newton(here, slope).norm(dim=1) > CLOSE).nonzero()[:, 0]
    here, slope, y = here[far], slope[far], x[far]
    y = y + _within(here, slope, least[far] - y, most[far] - y)
    lost = _newton(margins(y, far), slope).norm(dim=1) > LOST
    x[far] = torch.where(lost[:, None], torch.from_numpy(start).double()[far], y)
    return x.float().numpy()


def _within(
    value: Float[Tensor, "p 7"],
    slope: Float[Tensor, "p 7 3"],
    least: Float[Tensor, "p 3"],
    most: Float[Tensor, "p 3"],
) -> Float[Tensor, "p 3"]:
    """The step to value 0 within a box: coordinates that would leave it stop at its rim, the others go on."""
    step = -_newton(value, slope)
    stopped = torch.minimum(torch.maximum(step, least), most)
    blocked = stopped != step
    rim = stopped * blocked
    rest = -_newton(value + (slope @ rim[..., None])[..., 0], slope * ~blocked[:, None])
    return torch.minimum(torch.maximum(rim + rest * ~blocked, least), most)


def _newton(value: Float[Tensor, "p 7"], slope: Float[Tensor, "p 7 3"]) -> Float[Tensor, "p 3"]:
    """The shortest step that makes all values 0, damped where the slope hardly says which way, half a voxel
    long at most."""
    # By Cramer's rule: for thousands of 3 x 3 systems a library's factorisation costs several times as much.
    a, b, c = slope.unbind(-1)
    u, v, w = ((slope[..., k] * value).sum(-1) for k in range(3))
    aa, ab, ac, bb, bc, cc = ((p * q).sum(-1) for p, q in ((a, a), (a, b), (a, c), (b, b), (b, c), (c, c)))
    damping = 1e-3 * (aa + bb + cc) + 1e-12
    aa, bb, cc = aa + damping, bb + damping, cc + damping
    x, y, z = bb * cc - bc * bc, bc * ac - ab * cc, ab * bc - bb * ac
    det = aa * x + ab * y + ac * z
    step = (
        torch.stack(
            [
                x * u + y * v + z * w,
                y * u + (aa * cc - ac * ac) * v + (ab * ac - aa * bc) * w,
                z * u + (ab * ac - aa * bc) * v + (aa * bb - ab * ab) * w,
            ],
            -1,
        )
        / det.clamp_min(1e-300)[:, None]
    )
    return step * (0.5 / step.norm(dim=1, keepdim=True).clamp_min(0.5))
