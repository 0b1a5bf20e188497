"""Reconstruction quality on held-out label maps, for both decoders and for their agreement."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from jaxtyping import UInt8
from torch import Tensor

from anatomica.labels import LabelTable
from anatomica.models.autoencoder import Autoencoder
from anatomica.models.field import decode_labels
from anatomica.training.losses import hard_dice


@dataclass(frozen=True)
class Reconstruction:
    """Mean Dice a tissue (NaN where it never occurs): each decoder against the truth, and one another."""

    names: tuple[str, ...]
    field: list[float]
    conv: list[float]
    agreement: list[float]
    field_fine: list[float] | None = None

    def summary(self) -> str:
        parts = []
        for name in ("field", "conv", "agreement", "field_fine"):
            values = getattr(self, name)
            if values is None:
                continue
            found = [(v, n) for v, n in zip(values, self.names, strict=True) if v == v]
            worst = f" (worst {min(found)[1]} {min(found)[0]:.3f})" if found else ""
            parts.append(f"{name} Dice {_mean(values):.4f}{worst}")
        return ", ".join(parts)

    def as_dict(self) -> dict[str, object]:
        """For the card: means and the Dice a tissue."""
        out: dict[str, object] = {}
        for name in ("field", "conv", "agreement", "field_fine"):
            values = getattr(self, name)
            if values is not None:
                kept = {n: round(v, 4) for n, v in zip(self.names, values, strict=True) if v == v}
                out[name] = {"mean": round(_mean(values), 4), "tissues": kept}
        return out


def _mean(values: list[float]) -> float:
    real = [v for v in values if v == v]
    return sum(real) / max(1, len(real))


@torch.inference_mode()
def reconstruction(
    autoencoder: Autoencoder,
    labels: UInt8[Tensor, "v n n n"],
    table: LabelTable,
    fine: UInt8[Tensor, "v m m m"] | None = None,
) -> Reconstruction:
    """Encode, decode the posterior mean both ways, compare. `fine` are the same patients at a finer grid."""
    autoencoder.eval()
    device = next(autoencoder.parameters()).device
    classes, n = len(table), labels.shape[1]
    scores: dict[str, list[Tensor]] = {"field": [], "conv": [], "agreement": [], "field_fine": []}
    for i in range(len(labels)):
        z = autoencoder.encode(labels[i : i + 1].to(device)).mean
        truth = labels[i].flatten().long()
        field = decode_labels(autoencoder.field, z, n).flatten().cpu().long()
        conv = autoencoder.decode_conv(z).argmax(1).flatten().cpu()
        scores["field"].append(hard_dice(field, truth, classes))
        scores["conv"].append(hard_dice(conv, truth, classes))
        scores["agreement"].append(hard_dice(field, conv, classes))
        if fine is not None:
            decoded = decode_labels(autoencoder.field, z, fine.shape[1]).flatten().cpu().long()
            scores["field_fine"].append(hard_dice(decoded, fine[i].flatten().long(), classes))
    means = {k: torch.stack(v).nanmean(0)[1:].tolist() if v else None for k, v in scores.items()}
    return Reconstruction(table.tissues, **means)  # type: ignore[arg-type]
