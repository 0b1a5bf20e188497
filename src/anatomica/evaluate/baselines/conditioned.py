"""The paper's baselines: denoisers that are trained to read a task's moments, explicitly or as heat maps.

Both concatenate a condition to the noisy latent along the channels. Explicit: the moments themselves, 13
numbers per substructure, spread over the grid. Implicit: one heat map of each substructure's ellipsoid.
"""

from __future__ import annotations

import hashlib
import math
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

import torch
from jaxtyping import Bool, Float
from torch import Tensor, nn

from anatomica.anatomy.catalogue import anatomy
from anatomica.anatomy.frame import Frame
from anatomica.anatomy.label_map import LabelMap
from anatomica.errors import AnatomicaError
from anatomica.measurement.moments import Moments
from anatomica.measurement.placing import measure_in, resolve, structure_map
from anatomica.prior.edm import EDM, build_network
from anatomica.prior.layers import Conv3d
from anatomica.prior.presets import UNetConfig
from anatomica.prior.sampler import Denoiser
from anatomica.prior.settings import from_dict
from anatomica.prior.training.checkpoint import load_into, read_checkpoint
from anatomica.prior.unet import UNet
from anatomica.prior.zoo import Model
from anatomica.spec.spec import Spec

Conditioning = Literal["explicit", "implicit"]
MOMENTS = 13
"""Mass, centroid (3) and covariance (9) of a substructure."""
SURFACE = math.sqrt(5)
"""Mahalanobis distance of a uniform ellipsoid's surface: where the shifted sigmoid is 1/2."""


@dataclass(frozen=True)
class Ranges:
    """(smallest, largest) value over a task's training cases, for min-max normalisation."""

    mass: tuple[float, float]
    centroid: tuple[float, float]
    covariance: tuple[float, float]

    @classmethod
    def of(cls, moments: Moments, valid: Bool[Tensor, "*b"]) -> Ranges:
        parts = (moments.mass[valid], moments.centroid[valid], moments.covariance[valid])
        if not len(parts[0]):
            raise AnatomicaError("no training case has a valid domain of the task")
        return cls(*((float(x.min()), float(x.max())) for x in parts))


def task_moments(cube: LabelMap, spec: Spec) -> tuple[Moments, Bool[Tensor, "k"]]:
    """Moments of all K substructures of a task in the label map's own domains, and which are valid."""
    S = structure_map(cube)
    placed = resolve(spec, Frame.of(cube, anatomy(spec.anatomy)), cube)
    found = [measure_in(S(r.constraint.structure), r.domains) for r in placed]
    joined = Moments(
        torch.cat([m.mass for m in found]),
        torch.cat([m.centroid for m in found]),
        torch.cat([m.covariance for m in found]),
    )
    return joined, torch.cat([r.domains.valid for r in placed])


def explicit_condition(
    moments: Moments, valid: Bool[Tensor, "b k"], ranges: Ranges, n: int
) -> Float[Tensor, "b c n n n"]:
    """G_exp: the 13 K moments, min-max normalised, each constant over the n^3 grid; invalid ones are 0.

    The covariance includes the size, as in the paper's table of constants; the paper's text normalises it.
    """

    def scaled(x: Tensor, span: tuple[float, float]) -> Tensor:
        return (x - span[0]) / max(span[1] - span[0], 1e-12)

    parts = (
        scaled(moments.mass, ranges.mass)[..., None],
        scaled(moments.centroid, ranges.centroid),
        scaled(moments.covariance, ranges.covariance).flatten(-2),
    )
    vector = torch.where(valid[..., None], torch.cat(parts, dim=-1), 0).flatten(1).float()
    return vector[:, :, None, None, None].expand(*vector.shape, n, n, n)


def implicit_condition(moments: Moments, valid: Bool[Tensor, "b k"], n: int) -> Float[Tensor, "b k n n n"]:
    """G_imp: sigmoid(sqrt 5 - Mahalanobis distance) of every grid point; an invalid substructure is 0.

    A plane or a line has no width of its own; the grid sees it one cell wide, so a cell's variance is added.
    """
    r = (torch.arange(n, dtype=torch.float64) + 0.5) / n
    X = torch.stack(torch.meshgrid(r, r, r, indexing="ij"), dim=-1)
    cell = torch.eye(3, dtype=torch.float64) / (12 * n * n)
    precision = torch.linalg.inv(moments.covariance.double() + cell)
    d = X - moments.centroid.double()[:, :, None, None, None]
    squared = torch.einsum("bkxyzi,bkij,bkxyzj->bkxyz", d, precision, d)
    heat = torch.sigmoid(SURFACE - squared.clamp_min(0).sqrt())
    return torch.where(valid[..., None, None, None], heat, 0).float()


def condition(
    conditioning: Conditioning, moments: Moments, valid: Bool[Tensor, "b k"], ranges: Ranges, n: int
) -> Float[Tensor, "b c n n n"]:
    if conditioning == "explicit":
        return explicit_condition(moments, valid, ranges, n)
    return implicit_condition(moments, valid, n)


def channels(conditioning: Conditioning, substructures: int) -> int:
    return substructures * (MOMENTS if conditioning == "explicit" else 1)


def widen(network: UNet, extra: int) -> UNet:
    """The same network with `extra` input channels, which do nothing until they are trained."""
    old = network.conv_in
    new = Conv3d(old.in_channels + extra, old.out_channels, 3, padding=1)
    with torch.no_grad():
        new.weight.zero_()
        new.weight[:, : old.in_channels] = old.weight
        assert new.bias is not None
        assert old.bias is not None
        new.bias.copy_(old.bias)
    network.conv_in = new
    return network


GAIN = 16.0
"""Factor on the condition, so that inputs which start at zero learn faster than the tuned weights change."""


class Filled(nn.Module):
    """A widened network with the condition filled in: what EDM takes for an unconditional one."""

    def __init__(self, network: nn.Module, G: Float[Tensor, "b c n n n"]) -> None:
        super().__init__()
        self.network, self.G = network, G

    def forward(self, x: Float[Tensor, "b c h w d"], c_noise: Float[Tensor, " b"]) -> Tensor:
        return self.network(torch.cat([x, GAIN * self.G.to(x)], dim=1), c_noise)


@dataclass(frozen=True, eq=False)
class Baseline:
    """A trained baseline of one task; `hash` names its exact weights."""

    task: str
    conditioning: Conditioning
    network: UNet
    ranges: Ranges
    model: Model
    about: dict[str, Any]
    hash: str

    def denoiser(self, moments: Moments, valid: Bool[Tensor, "b k"]) -> Denoiser:
        """D(z; sigma | moments): one target per sample of the batch."""
        G = condition(self.conditioning, moments, valid, self.ranges, self.model.latent_shape[-1])
        edm = self.model.denoiser
        return EDM(Filled(self.network, G.to(self.model.device)), edm.config, edm.gaussian)


def folder_name(task: str, conditioning: str) -> str:
    """Where a baseline lies in the folder of all baselines."""
    return f"{task}-{conditioning}"


def load_baseline(run: Path, model: Model) -> Baseline:
    """The baseline in a run folder of `anatomica train baseline`, for the model it was trained beside."""
    path = run / "checkpoint.safetensors"
    tensors, header = read_checkpoint(path)
    about = header["about"]
    if about.get("model") != model.hash:
        raise AnatomicaError(
            f"{run} was trained beside the model {about.get('model')}, not {model.hash}; train it again"
        )
    c, n = model.latent_shape[0], model.latent_shape[-1]
    unet = from_dict(UNetConfig, about["unet"])
    network = widen(build_network(c, n, unet, model.denoiser.config), about["extra_channels"])
    state = {k.removeprefix("ema.network."): v for k, v in tensors.items() if k.startswith("ema.network.")}
    load_into(network, state, path)
    network.eval().requires_grad_(False).to(model.device)
    network.to(memory_format=torch.channels_last_3d)  # type: ignore[call-overload]
    ranges = Ranges(*(tuple(about["ranges"][k]) for k in ("mass", "centroid", "covariance")))  # type: ignore[arg-type]
    digest = hashlib.sha256(path.read_bytes()).hexdigest()[:16]
    return Baseline(about["task"], about["conditioning"], network, ranges, model, about, digest)
