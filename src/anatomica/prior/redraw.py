"""Would the prior draw it so? A label map is encoded, noised a little, denoised and compared with itself.

A denoiser gives back what patients have and takes away what none has: a piece of ventricle in the aorta, a
wall with a hole. So the place where a label map and its redrawing differ most tells how far it is from the
prior, in voxels, whatever is wrong with it. How much differs in patients is known from the training set.
"""

from __future__ import annotations

import numpy as np
import torch
import torch.nn.functional as F
from jaxtyping import Float, UInt8
from torch import Tensor

from anatomica.prior.autoencoder import Autoencoder
from anatomica.prior.edm import EDM, LatentScaler

SIGMAS = (0.0, 0.7, 1.5)
"""Noise before redrawing; without noise only the autoencoder redraws. Of 40 coronaries spoiled in eight ways
each level finds some that the others miss, and 3.0 finds none besides."""
WINDOW = 6 / 64
"""Edge of the cubes in which differing voxels are counted, in edges of the whole."""
QUANTILE = 0.995
"""Share of the training patients that lie within each limit."""


@torch.no_grad()
def redrawn(
    autoencoder: Autoencoder, denoiser: EDM, scaler: LatentScaler, labels: UInt8[Tensor, "b n n n"]
) -> Float[Tensor, "b s"]:
    """For each noise level the largest share of a small cube whose labels the prior redraws as others."""
    labels = labels.to(scaler.mean.device)
    z = scaler.standardise(autoencoder.encode(labels).mean)
    noise = torch.randn(1, *z.shape[1:], generator=torch.Generator().manual_seed(0)).to(z)
    window = max(2, round(WINDOW * labels.shape[1]))
    found = []
    for sigma in SIGMAS:
        again = denoiser(z + sigma * noise, z.new_full((len(z),), sigma)) if sigma else z
        other = autoencoder.decode_conv(scaler.restore(again)).argmax(1) != labels
        found.append(F.avg_pool3d(other.float()[:, None], window, stride=2).flatten(1).amax(1))
    return torch.stack(found, dim=1)


def redraw_limits(
    autoencoder: Autoencoder, denoiser: EDM, scaler: LatentScaler, patients: UInt8[Tensor, "m n n n"]
) -> dict[str, float]:
    """By noise level what all but a few patients stay below; for a model's card."""
    parts = [redrawn(autoencoder, denoiser, scaler, some).cpu() for some in patients.split(8)]
    limits = np.quantile(torch.cat(parts).numpy(), QUANTILE, axis=0)
    return {f"{sigma:g}": float(f"{limit:.4g}") for sigma, limit in zip(SIGMAS, limits, strict=True)}
