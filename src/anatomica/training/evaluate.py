"""Reconstruction quality on held-out label maps, for both decoders and for their agreement."""

from __future__ import annotations

import dataclasses
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
    """Mean Dice a tissue over the maps that have it (NaN if none): each decoder against the truth, and one
    another. `stray` is the mean number of voxels a map that a decoder gives to tissues the truth lacks."""

    names: tuple[str, ...]
    field: list[float]
    conv: list[float]
    agreement: list[float]
    field_fine: list[float] | None = None
    stray: dict[str, float] = dataclasses.field(default_factory=dict)

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
        return out | {"stray_voxels": {k: round(v, 2) for k, v in self.stray.items()}}


def _mean(values: list[float]) -> float:
    real = [v for v in values if v == v]
    return sum(real) / max(1, len(real))


@torch.inference_mode()
def reconstruction(
    autoencoder: Autoencoder,
    labels: UInt8[Tensor, "v n n n"],
    table: LabelTable,
    fine: UInt8[Tensor, "w m m m"] | None = None,
) -> Reconstruction:
    """Encode, decode the posterior mean both ways, compare. `fine` are the first patients on a finer grid."""
    autoencoder.eval()
    device = next(autoencoder.parameters()).device
    classes, n = len(table), labels.shape[1]
    scores: dict[str, list[Tensor]] = {"field": [], "conv": [], "agreement": [], "field_fine": []}
    stray: dict[str, float] = {}
    for i in range(len(labels)):
        z = autoencoder.encode(labels[i : i + 1].to(device)).mean
        truth = labels[i].flatten().long()
        field = decode_labels(autoencoder.field, z, n).flatten().cpu().long()
        conv = autoencoder.decode_conv(z).argmax(1).flatten().cpu()
        there = torch.bincount(truth, minlength=classes) > 0
        for name, one, other in (("field", field, truth), ("conv", conv, truth), ("agreement", field, conv)):
            scores[name].append(torch.where(there, hard_dice(one, other, classes), torch.nan))
        for name, decoded in (("field", field), ("conv", conv)):
            stray[name] = stray.get(name, 0.0) + float((~there[decoded]).sum()) / len(labels)
        if fine is not None and i < len(fine):
            decoded = decode_labels(autoencoder.field, z, fine.shape[1]).flatten().cpu().long()
            dice = hard_dice(decoded, fine[i].flatten().long(), classes)
            scores["field_fine"].append(torch.where(there, dice, torch.nan))
    means = {k: torch.stack(v).nanmean(0)[1:].tolist() if v else None for k, v in scores.items()}
    return Reconstruction(table.tissues, **means, stray=stray)  # type: ignore[arg-type]
