"""Dice + cross-entropy, on weighted points or on the full grid: the same function."""

from __future__ import annotations

import torch
import torch.nn.functional as F
from jaxtyping import Float, Int64
from torch import Tensor


def dice_cross_entropy(
    logits: Float[Tensor, "b p C"], labels: Int64[Tensor, "b p"], weights: Float[Tensor, "b p"] | None = None
) -> tuple[Float[Tensor, " b"], Float[Tensor, " b"]]:
    """(1 - soft Dice, averaged over the tissues present; cross-entropy, averaged over voxels) of each sample.

    Dice = 2 Σ w p y / (Σ w p + Σ w y). The background is not a tissue. A tissue without a point has no Dice;
    cross-entropy already keeps it away. Per sample, so that a batch split over processes has the same loss.
    """
    log_p = F.log_softmax(logits.float(), dim=-1)
    picked = log_p.gather(-1, labels[..., None])[..., 0]
    w = torch.ones_like(picked) if weights is None else weights
    cross_entropy = -(w * picked).sum(1) / w.sum(1)
    p = log_p.exp()
    shape = (logits.shape[0], logits.shape[2])
    zeros = torch.zeros(shape, dtype=p.dtype, device=p.device)
    overlap = zeros.scatter_add(1, labels, w * picked.exp())
    size = zeros.scatter_add(1, labels, w)
    predicted = torch.einsum("bp,bpc->bc", w, p)
    present = (size > 0) & (torch.arange(shape[1], device=p.device) > 0)
    dice = 2 * overlap / (predicted + size).clamp_min(1e-6)
    loss = torch.where(present, 1 - dice, 0.0).sum(1) / present.sum(1).clamp_min(1)
    return loss, cross_entropy


def hard_dice(
    predicted: Int64[Tensor, " v"], truth: Int64[Tensor, " v"], classes: int
) -> Float[Tensor, " C"]:
    """Dice of two label arrays per class; NaN where neither has it."""
    both = torch.bincount(truth[predicted == truth], minlength=classes)
    total = torch.bincount(predicted, minlength=classes) + torch.bincount(truth, minlength=classes)
    return torch.where(total > 0, 2 * both / total.clamp_min(1), torch.nan).float()
