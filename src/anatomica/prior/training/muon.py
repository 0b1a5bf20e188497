"""Muon: momentum whose matrix is made orthogonal before the step (Jordan et al. 2024)."""

from __future__ import annotations

from typing import Any

import torch
from jaxtyping import Float
from torch import Tensor, nn

MOMENTUM = 0.95
# Root mean square of an update's entries, in units of the learning rate. Adam's is between 0.2 and 1, so one
# learning rate serves the matrices and what AdamW takes.
UPDATE_RMS = 0.4


class Muon(torch.optim.AdamW):
    """Orthogonal steps for the hidden layers' matrices, AdamW for all else.

    A gradient's few large singular values drown the many small ones, and plain steps learn those late.
    Convolutions count as matrices of (first dimension) x (everything else). Biases, norms and the layers that
    write a network's outputs stay with AdamW.
    """

    def __init__(self, model: nn.Module, last_layers: tuple[nn.Module, ...], **adam: Any) -> None:
        last = {id(p) for layer in last_layers for p in layer.parameters()}
        matrices, others = [], []
        for parameter in model.parameters():
            hidden = parameter.ndim >= 2 and id(parameter) not in last
            (matrices if hidden else others).append(parameter)
        super().__init__([{"params": others}, {"params": matrices, "matrices": True}], **adam)

    @torch.no_grad()
    def step(self, closure: Any = None) -> Any:
        for group in self.param_groups:
            if not group.get("matrices"):
                continue
            for p in group["params"]:
                if p.grad is None:
                    continue
                state = self.state[p]
                if "exp_avg" not in state:
                    state["exp_avg"] = torch.zeros_like(p)
                momentum = state["exp_avg"].mul_(MOMENTUM).add_(p.grad)
                ahead = (p.grad + MOMENTUM * momentum).reshape(p.shape[0], -1)
                update = UPDATE_RMS * max(ahead.shape) ** 0.5 * orthogonalised(ahead)
                p.mul_(1 - group["lr"] * group["weight_decay"])
                p.add_(update.reshape(p.shape), alpha=-group["lr"])
                p.grad = None  # done: AdamW passes over it
        return super().step(closure)


def orthogonalised(matrix: Float[Tensor, "m n"]) -> Float[Tensor, "m n"]:
    """The matrix with all its singular values near 1 (between 0.7 and 1.2), by five Newton-Schulz steps.

    The quintic's coefficients are Jordan's: steepest at zero, at the price of not converging exactly. A step
    multiplies x by a polynomial of the small square x x^T, so the five are multiplied there, and x once.
    """
    a, b, c = 3.4445, -4.7750, 2.0315
    wide = matrix.shape[0] <= matrix.shape[1]
    x = matrix if wide else matrix.T
    x = x / (x.norm() + 1e-12)
    square = x @ x.T
    factor = torch.eye(len(square), dtype=x.dtype, device=x.device)
    for _ in range(5):
        polynomial = (c * square @ square).add_(square, alpha=b)
        polynomial.diagonal().add_(a)
        factor = polynomial @ factor
        square = polynomial @ square @ polynomial
    x = factor @ x
    return x if wide else x.T
