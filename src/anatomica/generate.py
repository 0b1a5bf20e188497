"""Generation: seeds in, label maps out. The library function behind `anatomica generate`."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal

import torch
from jaxtyping import Float
from torch import Tensor

from anatomica.errors import AnatomicaError
from anatomica.models.field import decode_labels
from anatomica.models.zoo import Model
from anatomica.sampler import Callback, sample
from anatomica.volume import LabelMap, cube_affine

Decoder = Literal["field", "conv"]


@dataclass(frozen=True, eq=False)
class Sample:
    """One generated patient: its seed, its label map and the standardised latent it was decoded from."""

    seed: int
    label_map: LabelMap
    latent: Float[Tensor, "c h w d"]
    seconds: float


def generate(
    model: Model,
    spec: Any = None,
    *,
    seeds: Sequence[int],
    steps: int | None = None,
    method: str | None = None,
    decoder: Decoder = "field",
    resolution: int | None = None,
    batch: int = 8,
    callback: Callback | None = None,
) -> list[Sample]:
    """Label maps of new patients, one a seed; the same seed gives the same patient in any batch.

    >>> samples = generate(load_model("cardiac"), seeds=range(4))  # doctest: +SKIP
    """
    if spec is not None:
        raise AnatomicaError("this version generates without constraints; leave the spec out")
    return list(
        generate_each(
            model,
            seeds=seeds,
            steps=steps,
            method=method,
            decoder=decoder,
            resolution=resolution,
            batch=batch,
            callback=callback,
        )
    )


def generate_each(
    model: Model,
    *,
    seeds: Sequence[int],
    steps: int | None = None,
    method: str | None = None,
    decoder: Decoder = "field",
    resolution: int | None = None,
    batch: int = 8,
    callback: Callback | None = None,
    wrap: Callable[[Any], Any] = lambda denoiser: denoiser,
) -> Iterator[Sample]:
    """`generate` as a stream, one batch at a time; `wrap` makes the denoiser that is sampled (guidance)."""
    if decoder == "conv" and resolution not in (None, model.n):
        raise AnatomicaError(
            f"the convolutional decoder writes {model.n}^3 voxels alone; use decoder 'field'"
        )
    config = model.sampling
    config = replace(config, steps=steps or config.steps, method=method or config.method)
    n = resolution or model.n
    for start in range(0, len(seeds), max(1, batch)):
        began = time.perf_counter()
        chosen = [int(s) for s in seeds[start : start + max(1, batch)]]
        z = sample(
            wrap(model.denoiser), model.latent_shape, chosen, config, device=model.device, callback=callback
        )
        maps = decode(model, z, n, decoder)
        seconds = (time.perf_counter() - began) / len(chosen)
        for seed, label_map, latent in zip(chosen, maps, z.cpu(), strict=True):
            yield Sample(seed, label_map, latent, seconds)


@torch.no_grad()
def decode(model: Model, z: Float[Tensor, "b c h w d"], n: int, decoder: Decoder = "field") -> list[LabelMap]:
    """Label maps (argmax) of standardised latents."""
    latent = model.scaler.restore(z)
    if decoder == "field":
        index = decode_labels(model.autoencoder.field, latent, n)
    elif decoder == "conv":
        index = model.autoencoder.decode_conv(latent).argmax(1).to(torch.uint8)
    else:
        raise AnatomicaError(f"unknown decoder {decoder!r}; allowed: field, conv")
    ids = torch.tensor(model.table.ids, dtype=torch.uint8)
    affine = cube_affine(model.edge_mm, n)
    return [LabelMap(ids[i.long()].numpy(), affine, model.table) for i in index.cpu()]
