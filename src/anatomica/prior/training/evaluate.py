"""Reconstruction quality on held-out label maps, for both decoders and for their agreement."""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass

import torch
import torch.nn.functional as F
from jaxtyping import Float, UInt8
from torch import Tensor

from anatomica.anatomy.labels import LabelTable
from anatomica.prior.autoencoder import Autoencoder, one_hot
from anatomica.prior.field import decode_labels
from anatomica.prior.training.losses import hard_dice

SCORES = ("field", "conv", "agreement", "field_fine", "field_fractions")


@dataclass(frozen=True)
class Reconstruction:
    """Mean Dice per tissue over the maps that have it (NaN if none): each decoder against the truth, and one
    another. `field_fine` and `field_fractions` are the field's on a finer grid than the autoencoder's, from
    the latent of the labels and of the tissues' fractions. `stray` is the mean number of voxels per map that
    a decoder gives to tissues the truth lacks."""

    names: tuple[str, ...]
    field: list[float]
    conv: list[float]
    agreement: list[float]
    field_fine: list[float] | None = None
    field_fractions: list[float] | None = None
    stray: dict[str, float] = dataclasses.field(default_factory=dict)
    held_out: int = 0
    held_out_fine: int = 0

    def summary(self) -> str:
        parts = []
        for name in SCORES:
            values = getattr(self, name)
            if values is None:
                continue
            found = [(v, n) for v, n in zip(values, self.names, strict=True) if v == v]
            worst = f" (worst {min(found)[1]} {min(found)[0]:.3f})" if found else ""
            parts.append(f"{name} Dice {_mean(values):.4f}{worst}")
        return ", ".join(parts)

    def as_dict(self) -> dict[str, object]:
        """For the card: means and the Dice of each tissue."""
        out: dict[str, object] = {}
        for name in SCORES:
            values = getattr(self, name)
            if values is not None:
                kept = {n: round(v, 4) for n, v in zip(self.names, values, strict=True) if v == v}
                out[name] = {"mean": round(_mean(values), 4), "tissues": kept}
        counts = {"held_out": self.held_out, "held_out_fine": self.held_out_fine}
        return out | {"stray_voxels": {k: round(v, 2) for k, v in self.stray.items()}} | counts


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
    scores: dict[str, list[Tensor]] = {name: [] for name in SCORES}
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
            fractions = tissue_fractions(fine[i : i + 1].to(device), classes, n)
            latents = {"field_fine": z, "field_fractions": autoencoder.encode(fractions).mean}
            for name, latent in latents.items():
                decoded = decode_labels(autoencoder.field, latent, fine.shape[1]).flatten().cpu().long()
                dice = hard_dice(decoded, fine[i].flatten().long(), classes)
                scores[name].append(torch.where(there, dice, torch.nan))
    means = {k: torch.stack(v).nanmean(0)[1:].tolist() if v else None for k, v in scores.items()}
    counts = {"held_out": len(labels), "held_out_fine": 0 if fine is None else len(fine)}
    return Reconstruction(table.tissues, **means, stray=stray, **counts)  # type: ignore[arg-type]


def tissue_fractions(fine: UInt8[Tensor, "b m m m"], classes: int, n: int) -> Float[Tensor, "b C n n n"]:
    """Each tissue's share of every voxel of a coarser grid, which a label there rounds to all or nothing.

    The encoder was trained on whole labels (one-hot volumes); it reads shares as well, and they say where in
    a voxel a border lies.
    """
    return F.adaptive_avg_pool3d(one_hot(fine, classes).float(), n)
