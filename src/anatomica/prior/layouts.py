"""Layouts: what is left of patients' latents at the noise level where unconditional sampling may begin.

At noise sigma the training set's density is (1/m) sum_i N(z; z_i, sigma^2 I), exactly. Of a z_i only the
principal components that are wider than sigma can be told from the noise: a few dozen numbers that say which
vertebrae are in view, and nothing finer. A diffusion that is truncated there (Zheng et al. 2023, "Truncated
diffusion probabilistic models") has every layout as often as the patients have it, and saves the calls above.
A denoiser trained for an hour does not learn that of the rare layouts. It is for populations that fall into
kinds; where there is only one kind, the denoiser knows it as well.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from jaxtyping import Float
from torch import Tensor

from anatomica.prior.seeds import seeded

RANK = 64
"""Principal components kept: at noise 6 the others are narrower than the noise in every shipped anatomy."""
KIN = 5
"""A new layout is like a patient's and this many nearest ones'."""
OWN = 0.5
"""The share of its variance around them that is the patient's own; the rest is of a difference of two."""
GOLDEN = (5**0.5 - 1) / 2
GOLDEN_64 = 0x9E3779B97F4A7C15
"""The same as a fraction of 2^64."""


@dataclass(frozen=True, eq=False)
class Layouts:
    """Standardised latents of m training patients: k principal components, ordered by the first of them."""

    mean: Float[Tensor, "c h w d"]
    basis: Float[Tensor, "k c h w d"]
    patients: Float[Tensor, "m k"]

    def draw(self, seeds: Sequence[int]) -> Float[Tensor, "b c h w d"]:
        """A new layout for each seed, without the noise that sampling begins with.

        A smoothed bootstrap: p + sqrt(OWN) (x_i - p) + sqrt((1 - OWN) / 2) (x_j - x_l), where j and l are
        drawn among the kin of patient i and p is their mean. Patients come in the order of the golden ratio's
        multiples, so that seeds that follow one another have all kinds of layouts in their proportions.
        """
        drawn = torch.stack([self._draw(seed) for seed in seeds])
        return self.mean + torch.tensordot(drawn, self.basis, dims=1)

    def _draw(self, seed: int) -> Float[Tensor, " k"]:
        x, generator = self.patients, seeded(seed)
        # A float has too few digits for the fraction of a large multiple.
        i = int(seed * GOLDEN % 1 * len(x)) if seed < 2**32 else seed * GOLDEN_64 % 2**64 * len(x) >> 64
        kin = torch.linalg.vector_norm(x - x[i], dim=1).argsort()[: KIN + 1]
        j, l = kin[torch.randint(len(kin), (2,), generator=generator)]  # noqa: E741
        p = x[kin].mean(dim=0)
        return p + OWN**0.5 * (x[i] - p) + ((1 - OWN) / 2) ** 0.5 * (x[j] - x[l])

    def to_tensors(self) -> dict[str, Tensor]:
        """For a file, in half precision."""
        return {name: value.half().cpu().contiguous() for name, value in vars(self).items()}


def fit_layouts(latents: Float[Tensor, "m c h w d"], rank: int = RANK) -> Layouts:
    """The principal components of standardised latents, and every patient's place among them."""
    flat = latents.flatten(1)
    mean = flat.mean(dim=0)
    u, s, v = torch.linalg.svd(flat - mean, full_matrices=False)
    k, shape = min(rank, len(latents)), latents.shape[1:]
    patients = u[:, :k] * s[:k]
    return Layouts(mean.view(shape), v[:k].view(k, *shape), patients[patients[:, 0].argsort()])
