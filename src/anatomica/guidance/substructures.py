"""Substructures of a clean latent: the one switch between Anatomica-V and Anatomica-L."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Literal

import torch
from torch import Tensor

from anatomica.measurement.parse import Union, l_parse, v_parse
from anatomica.measurement.placing import Resolved
from anatomica.prior.field import decode_on_demand
from anatomica.prior.zoo import Model

Variant = Literal["L", "V"]
Parser = Callable[[Tensor], list[Tensor]]
"""Standardised clean latents (b, c, h, w, d) -> one (b, k, a, e, g) tensor per constraint."""


def parser(
    model: Model, resolved: Sequence[Resolved], variant: Variant = "L", union: Union = "max"
) -> Parser:
    """How a model's latents are parsed into the substructures of resolved constraints.

    `L` decodes only the domains' points with the neural field; `V` decodes the whole voxel map with the
    convolutional decoder and slices it. The softmax value applies to constraints with a Betti prior.
    """
    like = model.scaler.mean
    placed = [r.domains.to(like) for r in resolved]

    def parse_l(z: Tensor) -> list[Tensor]:
        features = model.autoencoder.field.prepare(model.scaler.restore(z))
        field = model.autoencoder.field
        everywhere = partial(field.at, features)
        on_demand = partial(decode_on_demand, field, features)
        return [
            l_parse(
                on_demand if _topology_alone(r) else everywhere,
                r.selection,
                domains,
                len(z),
                union,
                r.temperature,
            )
            for r, domains in zip(resolved, placed, strict=True)
        ]

    def parse_v(z: Tensor) -> list[Tensor]:
        logits = model.autoencoder.decode_conv(model.scaler.restore(z))
        maps: dict[float, Tensor] = {}
        parsed = []
        for r, domains in zip(resolved, placed, strict=True):
            heat = r.temperature
            if heat not in maps:
                maps[heat] = torch.softmax(logits / heat, dim=1)
            parsed.append(v_parse(maps[heat], r.selection, domains, union))
        return parsed

    return parse_l if variant == "L" else parse_v


def _topology_alone(r: Resolved) -> bool:
    """Whether gradients reach a few critical points only; those of moments reach all."""
    return r.wanted.betti is not None and not r.wanted.any_moment
