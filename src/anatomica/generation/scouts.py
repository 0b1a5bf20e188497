"""Scouts: unguided samples in few steps, drawn to see which layout a seed's noise decides on."""

from __future__ import annotations

from dataclasses import replace

import torch
from jaxtyping import Float
from torch import Tensor

from anatomica.prior.sampler import sample
from anatomica.prior.zoo import Model


@torch.no_grad()
def scout(model: Model, seed: int, steps: int) -> Float[Tensor, "1 c h w d"]:
    """The clean standardised latent of a seed's unguided sample, neither repaired nor certified."""
    config = replace(model.sampling, steps=steps)
    return sample(model.denoiser, model.latent_shape, [seed], config, device=model.device)
