"""The few layers that the autoencoder and the U-Net share."""

from __future__ import annotations

from collections.abc import Callable
from typing import cast

import torch
import torch.nn.functional as F
from jaxtyping import Float
from torch import Tensor, nn
from torch.utils.checkpoint import checkpoint


class Conv3d(nn.Conv3d):
    """A 3D convolution that stays fast at batch 1 on a CPU.

    PyTorch's dispatcher sends a batch of one with few channels to its unvectorised im2col kernel, 3-5 times
    slower than the oneDNN kernel that it uses from batch 2 on; without gradients we may call the latter.
    oneDNN's bf16 gradient of the weights reads memory that nobody wrote where the grid is two voxels wide
    (CPUs with avx512_bf16, torch 2.13): such small grids are float32 there.
    """

    def forward(self, input: Float[Tensor, "b c h w d"]) -> Float[Tensor, "b k h2 w2 d2"]:
        if input.device.type == "cpu" and torch.is_autocast_enabled("cpu") and min(input.shape[2:]) < 3:
            with torch.autocast("cpu", enabled=False):
                return super().forward(input.float())
        direct = (
            input.shape[0] == 1
            and input.device.type == "cpu"
            and input.dtype == self.weight.dtype == torch.float32
            and not torch.is_grad_enabled()
            and not torch.compiler.is_compiling()
            and torch.backends.mkldnn.is_available()
        )
        if not direct:
            return super().forward(input)
        padding = cast(tuple[int, ...], self.padding)
        return torch.mkldnn_convolution(
            input, self.weight, self.bias, padding, self.stride, self.dilation, self.groups
        )


class GroupNorm(nn.GroupNorm):
    """GroupNorm that computes in float32 where autocast has made its input bf16.

    The CPU's bf16 kernel takes four times as long for the gradient as the one of float32 (torch 2.13).
    """

    def forward(self, input: Float[Tensor, "b c h w d"]) -> Float[Tensor, "b c h w d"]:
        if input.device.type != "cpu" or input.dtype != torch.bfloat16:
            return super().forward(input)
        return super().forward(input.float()).to(input.dtype)


def group_norm(channels: int) -> GroupNorm:
    """GroupNorm with as many groups as divide the channels, at most 32, at least four channels in each."""
    groups = max(g for g in range(1, 33) if channels % g == 0 and (channels // g >= 4 or g == 1))
    return GroupNorm(groups, channels)


class ChannelNorm(nn.LayerNorm):
    """LayerNorm over the channels of each voxel, the norm of the convolutional decoder.

    GroupNorm's statistics run over the whole volume, mostly background: in the decoder a small tissue's
    features then depend on how much there is of everything else. Voxel by voxel it trained faster (in the
    encoder it was the other way round), and the decoder stays local: what it writes depends only on the
    latent nearby.
    """

    def forward(self, input: Float[Tensor, "b c h w d"]) -> Float[Tensor, "b c h w d"]:
        return super().forward(input.permute(0, 2, 3, 4, 1)).permute(0, 4, 1, 2, 3)


class ResBlock(nn.Module):
    """x + conv(silu(norm(conv(silu(norm(x)))))); the noise level's embedding scales and shifts the middle."""

    def __init__(
        self, c_in: int, c_out: int, embedding: int = 0, norm: Callable[[int], nn.Module] = group_norm
    ) -> None:
        super().__init__()
        self.norm1, self.conv1 = norm(c_in), Conv3d(c_in, c_out, 3, padding=1)
        self.norm2, self.conv2 = norm(c_out), Conv3d(c_out, c_out, 3, padding=1)
        self.modulation = nn.Linear(embedding, 2 * c_out) if embedding else None
        self.skip = Conv3d(c_in, c_out, 1) if c_in != c_out else nn.Identity()
        self.checkpointing = False
        # Every block starts as the identity (or the skip's projection): deep stacks train from step one.
        nn.init.zeros_(self.conv2.weight)
        nn.init.zeros_(self.conv2.bias)  # type: ignore[arg-type]
        if self.modulation is not None:
            nn.init.zeros_(self.modulation.weight)
            nn.init.zeros_(self.modulation.bias)

    def forward(
        self, x: Float[Tensor, "b c h w d"], embedding: Float[Tensor, "b e"] | None = None
    ) -> Float[Tensor, "b k h w d"]:
        if self.checkpointing and torch.is_grad_enabled():
            return checkpoint(self._run, x, embedding, use_reentrant=False)  # type: ignore[return-value]
        return self._run(x, embedding)

    def _run(self, x: Tensor, embedding: Tensor | None) -> Tensor:
        h = self.norm2(self.conv1(F.silu(self.norm1(x))))
        if self.modulation is not None and embedding is not None:
            scale, shift = self.modulation(embedding)[:, :, None, None, None].chunk(2, dim=1)
            h = h * (1 + scale) + shift
        return self.skip(x) + self.conv2(F.silu(h))


class Attention(nn.Module):
    """Self-attention between all voxels of a grid."""

    def __init__(self, channels: int, heads: int = 1) -> None:
        super().__init__()
        self.heads = heads
        self.norm = group_norm(channels)
        self.qkv = nn.Linear(channels, 3 * channels)
        self.out = nn.Linear(channels, channels)
        nn.init.zeros_(self.out.weight)
        nn.init.zeros_(self.out.bias)

    def forward(self, x: Float[Tensor, "b c h w d"]) -> Float[Tensor, "b c h w d"]:
        b, c = x.shape[:2]
        tokens = self.norm(x).flatten(2).transpose(1, 2)
        q, k, v = self.qkv(tokens).view(b, -1, 3, self.heads, c // self.heads).permute(2, 0, 3, 1, 4)
        mixed = _attend(q, k, v).transpose(1, 2).reshape(b, -1, c)
        return x + self.out(mixed).transpose(1, 2).reshape(x.shape)


def _attend(
    q: Float[Tensor, "b heads t c"], k: Float[Tensor, "b heads t c"], v: Float[Tensor, "b heads t c"]
) -> Float[Tensor, "b heads t c"]:
    """softmax(q k^T / sqrt(c)) v; in bf16 on a CPU written out, which takes half the time."""
    if q.device.type != "cpu" or q.dtype != torch.bfloat16:
        return F.scaled_dot_product_attention(q, k, v)
    return ((q @ k.transpose(-1, -2)) * q.shape[-1] ** -0.5).softmax(-1).to(v.dtype) @ v


class Downsample(nn.Module):
    """Half the resolution by a strided convolution."""

    def __init__(self, c_in: int, c_out: int) -> None:
        super().__init__()
        self.conv = Conv3d(c_in, c_out, 3, stride=2, padding=1)

    def forward(self, x: Float[Tensor, "b c h w d"]) -> Float[Tensor, "b k h2 w2 d2"]:
        return self.conv(x)


class Upsample(nn.Module):
    """Twice the resolution by a transposed convolution of kernel 4, stride 2.

    It contains "nearest neighbour, then a 3^3 convolution" as a special case (every output sees 2^3 inputs in
    both) and costs a quarter of it.
    """

    def __init__(self, c_in: int, c_out: int) -> None:
        super().__init__()
        self.conv = nn.ConvTranspose3d(c_in, c_out, 4, stride=2, padding=1)

    def forward(self, x: Float[Tensor, "b c h w d"]) -> Float[Tensor, "b k h2 w2 d2"]:
        return self.conv(x)


def use_checkpointing(module: nn.Module, on: bool = True) -> None:
    """Recompute every residual block's inside in the backward pass instead of storing it."""
    for child in module.modules():
        if isinstance(child, ResBlock):
            child.checkpointing = on
