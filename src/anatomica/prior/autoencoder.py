"""The variational autoencoder: one convolutional encoder, two decoders, one latent space."""

from __future__ import annotations

from typing import NamedTuple

import torch
import torch.nn.functional as F
from jaxtyping import Float, Integer
from torch import Tensor, nn

from anatomica.errors import AnatomicaError
from anatomica.prior.column import ColumnConv, ColumnInput, ColumnLayer
from anatomica.prior.field import Field, FourierFeatures
from anatomica.prior.layers import ChannelNorm, Conv3d, Downsample, ResBlock, Upsample, group_norm
from anatomica.prior.presets import AutoencoderConfig


class Posterior(NamedTuple):
    """The encoder's Gaussian q(z | V)."""

    mean: Float[Tensor, "b c h w d"]
    logvar: Float[Tensor, "b c h w d"]

    def sample(self, noise: Tensor) -> Tensor:
        """mean + std * noise, noise standard normal of the mean's shape."""
        return self.mean + (0.5 * self.logvar).exp() * noise

    def kl(self) -> Float[Tensor, " b"]:
        """KL(q || N(0, I)) in nats, summed over the latent, per sample."""
        return 0.5 * (self.mean**2 + self.logvar.exp() - 1 - self.logvar).flatten(1).sum(1)


class Crop(NamedTuple):
    """Where cubes cut from the volume lie: their first corner and their edge, in the cube's [0,1]."""

    start: Float[Tensor, "b 3"]
    extent: float


class Encoder(nn.Module):
    """One-hot voxels to the posterior's mean and log-variance on a grid `factor` times coarser.

    Of a column it sees bone and level, as the decoders write them, so that a window further down is the same
    anatomy with another level, in the latent too.
    """

    def __init__(self, classes: int, config: AutoencoderConfig) -> None:
        super().__init__()
        first, last = config.channels[0], config.channels[-1]
        self.column = ColumnInput(classes) if config.column else None
        self.stem = _stem(classes if self.column is None else 2, first, config.stem)
        layers: list[nn.Module] = []
        c = first
        for level, channels in enumerate(config.channels):
            if level:
                layers.append(Downsample(c, channels))
                c = channels
            layers += [ResBlock(c, c) for _ in range(config.res_blocks[level])]
        self.body = nn.Sequential(*layers)
        self.norm = group_norm(last)
        self.out = Conv3d(last, 2 * config.latent_channels, 3, padding=1)
        self.classes = classes

    def forward(self, labels: Integer[Tensor, "b n n n"] | Float[Tensor, "b C n n n"]) -> Posterior:
        h = self.body(self._first_layer(labels))
        mean, logvar = self.out(F.silu(self.norm(h))).chunk(2, dim=1)
        # Bounds keep exp() finite for any input; a trained encoder stays far inside them.
        return Posterior(mean, logvar.clamp(-20, 10))

    def _first_layer(self, labels: Tensor) -> Tensor:
        if self.column is not None:
            return self.stem(self.column(labels).to(self.stem.weight.dtype))
        if labels.is_floating_point():
            return self.stem(labels)
        if self.stem.stride[0] == 1:
            return self.stem(one_hot(labels, self.classes).to(self.stem.weight.dtype))
        return _stem_lookup(self.stem, labels)


def _stem(classes: int, channels: int, patch: int) -> Conv3d:
    if patch == 1:
        return Conv3d(classes, channels, 3, padding=1)
    return Conv3d(classes, channels, patch, stride=patch)


def _stem_lookup(stem: Conv3d, labels: Integer[Tensor, "b n n n"]) -> Float[Tensor, "b k m m m"]:
    """stem(one_hot(labels)) without ever building the one-hot volume: a sum of table rows per patch.

    A row belongs to one class at one place of the patch; with 25 tissues this saves 25 of 25 input channels
    of the most expensive layer.
    """
    k, classes, p = stem.weight.shape[0], stem.weight.shape[1], stem.weight.shape[2]
    b, n = labels.shape[:2]
    m = n // p
    patches = labels.view(b, m, p, m, p, m, p).permute(0, 1, 3, 5, 2, 4, 6).reshape(-1, p**3).long()
    place = torch.arange(p**3, device=labels.device) * classes
    table = stem.weight.permute(2, 3, 4, 1, 0).reshape(p**3 * classes, k)
    rows = F.embedding_bag(patches + place, table, mode="sum")
    if stem.bias is not None:
        rows = rows + stem.bias
    return rows.view(b, m, m, m, k).permute(0, 4, 1, 2, 3)


class ConvDecoder(nn.Module):
    """Mirror of the encoder (Anatomica-V): the latent grid to logits on the full voxel grid."""

    def __init__(self, classes: int, config: AutoencoderConfig) -> None:
        super().__init__()
        first, last = config.channels[0], config.channels[-1]
        layers: list[nn.Module] = [Conv3d(config.latent_channels, last, 3, padding=1)]
        c = last
        for level in reversed(range(len(config.channels))):
            if level < len(config.channels) - 1:
                layers.append(Upsample(c, config.channels[level]))
                c = config.channels[level]
            layers += [ResBlock(c, c, norm=ChannelNorm) for _ in range(config.res_blocks[level])]
        self.body = nn.Sequential(*layers, ChannelNorm(first), nn.SiLU())
        self.head: nn.Module
        if config.stem > 1:
            self.head = PatchHead(first, classes, config)
        elif config.column:
            self.head = ColumnConv(first, classes)
        else:
            self.head = Conv3d(first, classes, 3, padding=1)

    def forward(self, z: Float[Tensor, "b c h w d"], crop: Crop | None = None) -> Float[Tensor, "b C n n n"]:
        h = self.body(z)
        return self.head(h, crop) if isinstance(self.head, PatchHead) else self.head(h)


class PatchHead(nn.Module):
    """The stem's mirror: each coarse voxel writes the logits of its p^3 patch.

    They are more than the level has channels, so a pointwise network of the field's kind stands between, and
    like the field it knows where it is.
    """

    def __init__(self, channels: int, classes: int, config: AutoencoderConfig) -> None:
        super().__init__()
        self.patch, hidden = config.stem, config.head
        self.fourier = FourierFeatures(config.field.fourier, config.field.bandwidth)
        self.from_features = nn.Linear(channels, hidden)
        self.from_position = nn.Linear(2 * config.field.fourier, hidden, bias=False)
        places = config.stem**3
        column = ColumnLayer(hidden, classes, places) if config.column else None
        self.mlp = nn.Sequential(
            nn.LayerNorm(hidden),
            nn.SiLU(),
            nn.Linear(hidden, hidden),
            nn.LayerNorm(hidden),
            nn.SiLU(),
            nn.Linear(hidden, places * classes) if column is None else column,
        )

    def forward(self, x: Float[Tensor, "b c m m m"], crop: Crop | None = None) -> Float[Tensor, "b C n n n"]:
        p, (b, _, m) = self.patch, x.shape[:3]
        line = (torch.arange(m, device=x.device, dtype=x.dtype) + 0.5) / m
        r = torch.stack(torch.meshgrid(line, line, line, indexing="ij"), -1)[None]
        if crop is not None:
            r = crop.start.view(b, 1, 1, 1, 3) + crop.extent * r
        hidden = self.from_features(x.permute(0, 2, 3, 4, 1)) + self.from_position(self.fourier(r))
        parts = self.mlp(hidden).view(b, m, m, m, p, p, p, -1)
        # Channels stay last in memory, where the losses and argmax want them.
        spread = parts.permute(0, 1, 4, 2, 5, 3, 6, 7).reshape(b, p * m, p * m, p * m, -1)
        return spread.permute(0, 4, 1, 2, 3)


class Autoencoder(nn.Module):
    """Encoder, convolutional decoder and neural field around one latent space."""

    def __init__(self, classes: int, config: AutoencoderConfig) -> None:
        super().__init__()
        if config.n % config.factor:
            raise AnatomicaError(
                f"a grid of {config.n} voxels is not divisible by the factor {config.factor}"
            )
        self.config, self.classes = config, classes
        self.encoder = Encoder(classes, config)
        self.conv_decoder = ConvDecoder(classes, config)
        self.field = Field(config.latent_channels, classes, config.field, config.column)

    def encode(self, labels: Integer[Tensor, "b n n n"] | Float[Tensor, "b C n n n"]) -> Posterior:
        """Posterior of label indices (b, n, n, n) or one-hot volumes (b, C, n, n, n)."""
        return self.encoder(labels)

    def decode_conv(
        self, z: Float[Tensor, "b c h w d"], crop: Crop | None = None
    ) -> Float[Tensor, "b C n n n"]:
        """Logits on the voxel grid; `crop` says which part of the volume the latent is, if not all of it."""
        return self.conv_decoder(z, crop)

    def last_layers(self) -> tuple[nn.Module, ...]:
        """The layers that write what each part gives: posterior, voxels' logits, points' logits."""
        head = self.conv_decoder.head
        return self.encoder.out, head.mlp[-1] if isinstance(head, PatchHead) else head, self.field.mlp[-1]


def one_hot(labels: Integer[Tensor, "b n n n"], classes: int) -> Float[Tensor, "b C n n n"]:
    volume = torch.zeros(labels.shape[0], classes, *labels.shape[1:], device=labels.device)
    return volume.scatter_(1, labels.long()[:, None], 1.0)
