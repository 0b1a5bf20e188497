"""Parsing substructures: the Boolean subset operator, V-parsing from voxels, L-parsing from a field."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Literal

import torch
import torch.nn.functional as F
from jaxtyping import Float
from torch import Tensor

from anatomica.measurement.domains.domain import Domains

Union = Literal["max", "sum", "margin"]
FieldFunction = Callable[[Tensor], Tensor]
"""field(points (b, p, 3)) -> logits (b, p, C): a neural field bound to its latents, or anything like it."""


def subset(V: Float[Tensor, "*b C"], selection: Sequence[int], union: Union = "max") -> Float[Tensor, "*b"]:
    """Algorithm "Boolean Subset Operator" over the last axis: the union of the selected tissues.

    `max` is the paper's; `sum` is the exact probability of the union where V holds softmax probabilities.
    """
    chosen = V[..., list(selection)]
    return chosen.amax(dim=-1) if union == "max" else chosen.sum(dim=-1)


def membership(
    logits: Float[Tensor, "*b C"],
    selection: Sequence[int],
    union: Union = "max",
    temperature: float = 1.0,
) -> Float[Tensor, "*b"]:
    """How far each point belongs to the selected tissues, in (0, 1); the temperature divides the logits.

    `max` and `sum` are the subset operator on softmax probabilities. `margin` is the logistic function of the
    best selected logit minus the best other one: above 1/2 exactly where the label map (argmax) has one of
    the tissues, so that what is true of it at level 1/2 is true of the finished map.
    """
    if union != "margin":
        return subset(torch.softmax(logits / temperature, dim=-1), selection, union)
    others = [c for c in range(logits.shape[-1]) if c not in selection]
    margin = logits[..., list(selection)].amax(dim=-1) - logits[..., others].amax(dim=-1)
    return torch.sigmoid(margin / temperature)


def slice_volume(S: Float[Tensor, "b h w d"], points: Float[Tensor, "b *p 3"]) -> Float[Tensor, "b *p"]:
    """T^s[X]: trilinear at voxel centres; outside the cube is background (zero)."""
    flat = (2 * points.flip(-1) - 1).reshape(len(points), -1, 1, 1, 3)
    out = F.grid_sample(S[:, None], flat, mode="bilinear", padding_mode="zeros", align_corners=False)
    return out.reshape(points.shape[:-1])


def v_parse(
    V: Float[Tensor, "b C h w d"], selection: Sequence[int], domains: Domains, union: Union = "max"
) -> Float[Tensor, "b k a e g"]:
    """Algorithm "V-parsing": subset the voxel map's tissues, then slice every control domain in one call.

    Domains are shared by the batch (k, ...) or there is one set per sample (b, k, ...).
    """
    S = subset(V.movedim(1, -1), selection, union)
    return slice_domains(S, domains)


def slice_domains(S: Float[Tensor, "b h w d"], domains: Domains) -> Float[Tensor, "b k a e g"]:
    """Slice every domain out of structure maps; the whole cube at its own resolution is passed through."""
    if domains.is_whole_cube(S.shape[-1]):
        return S[:, None]
    return slice_volume(S, _points(domains.to(S), len(S)))


def l_parse(
    field: FieldFunction,
    selection: Sequence[int],
    domains: Domains,
    batch: int = 1,
    union: Union = "max",
    temperature: float = 1.0,
) -> Float[Tensor, "b k a e g"]:
    """Algorithm "L-parsing": decode the domains' points straight from latents, softmax, subset.

    Coarse or local is the domains' choice: a low grid over the whole cube, or a small box. Points outside
    the cube are masked to background. `temperature` divides the logits (the paper's softmax value). The
    points have the domains' dtype and device; `batch` is the number of samples that share the domains.
    """
    points = _points(domains, batch)
    logits = field(points.reshape(batch, -1, 3))
    S = membership(logits, selection, union, temperature)
    inside = ((points >= 0) & (points <= 1)).all(dim=-1)
    return S.reshape(points.shape[:-1]) * inside.to(S)


def _points(domains: Domains, batch: int) -> Float[Tensor, "b k a e g 3"]:
    X = domains.points()
    return X if X.dim() == 6 else X.expand(batch, *X.shape)
