"""The two training objectives as modules, so that DDP and torch.compile wrap the whole of them."""

from __future__ import annotations

import torch
from jaxtyping import Float, UInt8
from torch import Tensor, nn
from torch.utils.checkpoint import checkpoint

from anatomica.prior.autoencoder import Autoencoder, Crop
from anatomica.prior.edm import EDM, training_sigmas
from anatomica.prior.field import slice_trilinear
from anatomica.prior.training.losses import dice_cross_entropy
from anatomica.prior.training.points import DrawnPoints, all_points

# With the full grid, this many points are decoded at a time and recomputed in the backward pass.
FULL_GRID_CHUNK = 262_144


class AutoencoderObjective(nn.Module):
    """(Dice + cross-entropy) of the field and of the convolutional decoder, plus the weighted KL.

    Both decoders are compared at the same points: the drawn ones, or all voxels. If the labels are crops, the
    points are in the crops' frames and `crop` says where those lie.
    """

    def __init__(self, model: Autoencoder, kl_weight: float, conv_share: float = 1.0) -> None:
        super().__init__()
        self.model, self.kl_weight, self.conv_share = model, kl_weight, conv_share

    def forward(
        self,
        labels: UInt8[Tensor, "b n n n"],
        noise: Float[Tensor, "b c h w d"],
        drawn: DrawnPoints | None,
        crop: Crop | None = None,
    ) -> tuple[Float[Tensor, ""], dict[str, Tensor]]:
        posterior = self.model.encode(labels)
        z = posterior.sample(noise)
        # A crop's latent has fewer cells; what the KL costs a voxel stays the same.
        kl = posterior.kl().mean() * (self.model.config.n / labels.shape[1]) ** 3
        loss, terms = self.kl_weight * kl, {"kl": kl}
        points = all_points(labels) if drawn is None else drawn
        logits = self._field_logits(z, points.points, crop)
        dice, entropy = dice_cross_entropy(logits, points.labels, points.weights)
        terms |= {"field_dice": 1 - dice.mean(), "field_ce": entropy.mean()}
        loss = loss + (dice + entropy).mean()
        seen = round(self.conv_share * len(labels))
        if seen:
            logits = self.model.decode_conv(z[:seen], _first(crop, seen)).flatten(2).transpose(1, 2)
            if drawn is not None:
                rows = points.voxel[:seen, :, None].expand(-1, -1, logits.shape[2])
                logits = logits.gather(1, rows)
            dice, entropy = dice_cross_entropy(logits, points.labels[:seen], points.weights[:seen])
            terms |= {"conv_dice": 1 - dice.mean(), "conv_ce": entropy.mean()}
            loss = loss + (dice + entropy).mean()
        return loss, terms

    def _field_logits(self, z: Tensor, points: Tensor, crop: Crop | None) -> Tensor:
        features = self.model.field.prepare(z)
        if crop is not None:
            position = crop.start[:, None] + crop.extent * points
            return self.model.field.decode(slice_trilinear(features, points), position)
        if points.shape[1] <= FULL_GRID_CHUNK:
            return self.model.field.at(features, points)
        chunks = points.split(FULL_GRID_CHUNK, dim=1)
        return torch.cat(
            [checkpoint(self.model.field.at, features, c, use_reentrant=False) for c in chunks], 1
        )  # type: ignore[arg-type]


def _first(crop: Crop | None, count: int) -> Crop | None:
    return None if crop is None else Crop(crop.start[:count], crop.extent)


class DenoiserObjective(nn.Module):
    """E omega(sigma) |D(z + n; sigma) - z|^2 over lognormal sigma."""

    def __init__(self, model: EDM) -> None:
        super().__init__()
        self.model = model

    def forward(
        self, z: Float[Tensor, "b c h w d"], noise: Float[Tensor, "b c h w d"], uniform: Float[Tensor, " b"]
    ) -> tuple[Float[Tensor, ""], dict[str, Tensor]]:
        sigma = training_sigmas(self.model.config, uniform)
        predicted = self.model(z + sigma.view(-1, 1, 1, 1, 1) * noise, sigma)
        error = ((predicted - z) ** 2).flatten(1).mean(1)
        loss = (self.model.loss_weight(sigma) * error).mean()
        return loss, {"mse": error.mean()}
