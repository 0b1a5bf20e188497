"""The 3D U-Net K_theta of the denoiser: residual blocks with the noise level, attention on coarse grids."""

from __future__ import annotations

import math

import torch
import torch.nn.functional as F
from jaxtyping import Float
from torch import Tensor, nn

from anatomica.prior.layers import Attention, Conv3d, Downsample, ResBlock, Upsample, group_norm
from anatomica.prior.presets import UNetConfig


class UNet(nn.Module):
    """channels[l] at level l on a grid of n / 2^l; a level whose grid edge is in `attention_at` attends.

    The tables' attention resolutions 8, 4, 2 exceed what three levels have: a 32^3 latent goes to 32, 16, 8,
    so the paper's model attends only at 8; a 16^3 latent goes to 16, 8, 4, so `small` attends at 8 and 4.
    It reads `inputs` channels and writes the latent's.
    """

    def __init__(self, latent_channels: int, n: int, config: UNetConfig, inputs: int) -> None:
        super().__init__()
        channels, blocks = config.channels, config.res_blocks
        self.embedding_dim = channels[0]
        e = 4 * channels[0]
        self.embed = nn.Sequential(nn.Linear(channels[0], e), nn.SiLU(), nn.Linear(e, e), nn.SiLU())
        self.conv_in = Conv3d(inputs, channels[0], 3, padding=1)

        def attend(c: int, level: int) -> nn.Module:
            return Attention(c, config.heads) if n >> level in config.attention_at else nn.Identity()

        self.down, self.up = nn.ModuleList(), nn.ModuleList()
        c, skips = channels[0], [channels[0]]
        for level, width in enumerate(channels):
            if level:
                self.down.append(nn.ModuleList([Downsample(c, c), nn.Identity()]))
                skips.append(c)
            for _ in range(blocks):
                self.down.append(nn.ModuleList([ResBlock(c, width, e), attend(width, level)]))
                c = width
                skips.append(c)
        last = len(channels) - 1
        self.middle = nn.ModuleList([ResBlock(c, c, e), attend(c, last), ResBlock(c, c, e)])
        for level in reversed(range(len(channels))):
            for _ in range(blocks + 1):
                self.up.append(
                    nn.ModuleList(
                        [ResBlock(c + skips.pop(), channels[level], e), attend(channels[level], level)]
                    )
                )
                c = channels[level]
            if level:
                self.up.append(nn.ModuleList([Upsample(c, c), nn.Identity()]))
        self.norm = group_norm(c)
        self.out = Conv3d(c, latent_channels, 3, padding=1)
        nn.init.zeros_(self.out.weight)
        nn.init.zeros_(self.out.bias)  # type: ignore[arg-type]

    def forward(
        self, x: Float[Tensor, "b in h w d"], c_noise: Float[Tensor, " b"]
    ) -> Float[Tensor, "b c h w d"]:
        embedding = self.embed(noise_features(c_noise, self.embedding_dim))
        h = self.conv_in(x)
        skips = [h]
        for layer, attention in self.down:  # type: ignore[misc]
            h = attention(layer(h, embedding)) if isinstance(layer, ResBlock) else layer(h)
            skips.append(h)
        before, attention, after = self.middle
        h = after(attention(before(h, embedding)), embedding)
        for layer, attention in self.up:  # type: ignore[misc]
            if isinstance(layer, ResBlock):
                h = attention(layer(torch.cat([h, skips.pop()], dim=1), embedding))
            else:
                h = layer(h)
        return self.out(F.silu(self.norm(h)))


def noise_features(c_noise: Float[Tensor, " b"], dim: int) -> Float[Tensor, "b e"]:
    """Sinusoids of ln(sigma)/4, periods spread geometrically over the range that training draws from."""
    frequencies = torch.exp(torch.linspace(0, math.log(64.0), dim // 2, device=c_noise.device))
    angle = c_noise[:, None] * frequencies
    return torch.cat([angle.cos(), angle.sin()], dim=1)
