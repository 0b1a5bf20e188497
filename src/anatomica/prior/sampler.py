"""Samplers: from noise at sigma_max to a clean latent, given any denoiser. None knows about guidance.

All have one signature, `(denoiser, z, sigmas, *, generators, callback, ...)`: z is the noisy latent at
sigmas[0], sigmas falls and ends with 0. A denoiser is any callable (z_sigma, sigma (b,)) -> z_0 prediction.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from typing import Annotated, Any

import torch
from jaxtyping import Float
from pydantic import Field
from torch import Tensor

from anatomica.errors import AnatomicaError
from anatomica.prior.seeds import seeded
from anatomica.prior.settings import STRICT, Above, FromZero, from_dict

Denoiser = Callable[[Tensor, Tensor], Tensor]


@dataclass(frozen=True)
class SamplingConfig:
    """Schedule and sampler; churn parameters are those of Karras' Algorithm 2 (0 = deterministic), `eta` is
    the multistep method's fresh noise (0 = deterministic, 1 = the reverse SDE)."""

    __pydantic_config__ = STRICT
    method: Annotated[str, Field(pattern="^(euler|multistep|stochastic)$")] = "stochastic"
    steps: Annotated[int, Field(ge=1, le=10_000)] = 100
    sigma_min: Annotated[float, Field(ge=1e-6, le=1e6, allow_inf_nan=False)] = 0.01
    sigma_max: Above = 80.0
    rho: Annotated[float, Field(ge=0.1, le=100, allow_inf_nan=False)] = 1.0
    s_churn: FromZero = 0.0
    s_min: FromZero = 0.0
    s_max: Annotated[float, Field(ge=0)] = float("inf")
    s_noise: FromZero = 1.0
    eta: Annotated[float, Field(ge=0, le=100, allow_inf_nan=False)] = 0.0


@dataclass(frozen=True, eq=False)
class Step:
    """What a callback sees once per step: the latent z at level sigma and the prediction from it."""

    index: int
    count: int
    sigma: float
    z: Tensor
    denoised: Tensor


Callback = Callable[[Step], None]


def karras_schedule(
    steps: int, sigma_min: float = 0.01, sigma_max: float = 80.0, rho: float = 7.0
) -> Float[Tensor, " levels"]:
    """sigma_i = (sigma_max^(1/rho) + i/(N-1) (sigma_min^(1/rho) - sigma_max^(1/rho)))^rho, then a 0."""
    if steps < 1:
        raise AnatomicaError(f"sampling needs at least one step, not {steps}")
    if not 0 < sigma_min < sigma_max:
        raise AnatomicaError(f"noise levels must satisfy 0 < sigma_min < sigma_max: {sigma_min}, {sigma_max}")
    ramp = torch.linspace(0, 1, steps, dtype=torch.float64)
    high, low = sigma_max ** (1 / rho), sigma_min ** (1 / rho)
    return torch.cat([(high + ramp * (low - high)) ** rho, torch.zeros(1, dtype=torch.float64)]).float()


def seeded_generators(seeds: Sequence[int]) -> list[torch.Generator]:
    """One generator per sample, on the CPU, so that a seed means the same anatomy on every device."""
    return [seeded(seed) for seed in seeds]


def draw_noise(generators: Sequence[torch.Generator], like: Float[Tensor, "b c h w d"]) -> Tensor:
    """Standard normal noise, each sample's from its own generator: the batch does not matter."""
    if len(generators) != len(like):
        raise AnatomicaError(f"{len(generators)} generators for {len(like)} samples")
    return torch.stack([torch.randn(like.shape[1:], generator=g) for g in generators]).to(like)


@torch.no_grad()
def sample_euler(
    denoiser: Denoiser,
    z: Float[Tensor, "b c h w d"],
    sigmas: Float[Tensor, " levels"],
    *,
    generators: Sequence[torch.Generator] | None = None,
    callback: Callback | None = None,
) -> Float[Tensor, "b c h w d"]:
    """Euler's method on dz/dsigma = (z - D(z; sigma)) / sigma. Deterministic."""
    levels = sigmas.tolist()
    for i, (sigma, sigma_next) in enumerate(itertools.pairwise(levels)):
        denoised = denoiser(z, z.new_full((len(z),), sigma))
        _report(callback, i, levels, z, denoised)
        z = denoised + (sigma_next / sigma) * (z - denoised)
    return z


@torch.no_grad()
def sample_stochastic(
    denoiser: Denoiser,
    z: Float[Tensor, "b c h w d"],
    sigmas: Float[Tensor, " levels"],
    *,
    generators: Sequence[torch.Generator] | None = None,
    callback: Callback | None = None,
    s_churn: float = 0.0,
    s_min: float = 0.0,
    s_max: float = math.inf,
    s_noise: float = 1.0,
) -> Float[Tensor, "b c h w d"]:
    """Karras et al. 2022, Algorithm 2: raise the noise level a little, then a Heun step down."""
    levels = sigmas.tolist()
    if s_churn > 0 and generators is None:
        raise AnatomicaError("the stochastic sampler with s_churn > 0 needs one generator per sample")
    most = min(s_churn / (len(levels) - 1), math.sqrt(2) - 1)
    for i, (sigma, sigma_next) in enumerate(itertools.pairwise(levels)):
        gamma = most if s_min <= sigma <= s_max else 0.0
        sigma_hat = sigma * (1 + gamma)
        if gamma > 0 and generators is not None:
            z = z + math.sqrt(sigma_hat**2 - sigma**2) * s_noise * draw_noise(generators, z)
        denoised = denoiser(z, z.new_full((len(z),), sigma_hat))
        _report(callback, i, levels, z, denoised)
        slope = (z - denoised) / sigma_hat
        z_next = z + (sigma_next - sigma_hat) * slope
        if sigma_next > 0:
            slope_next = (z_next - denoiser(z_next, z.new_full((len(z),), sigma_next))) / sigma_next
            z_next = z + (sigma_next - sigma_hat) * (slope + slope_next) / 2
        z = z_next
    return z


@torch.no_grad()
def sample_multistep(
    denoiser: Denoiser,
    z: Float[Tensor, "b c h w d"],
    sigmas: Float[Tensor, " levels"],
    *,
    generators: Sequence[torch.Generator] | None = None,
    callback: Callback | None = None,
    eta: float = 0.0,
) -> Float[Tensor, "b c h w d"]:
    """Second order with one denoiser call per step.

    With lambda = -ln sigma the flow from s to t, h = lambda_t - lambda_s, solves exactly to
    z_t = e^-k z_s + int_0^h (1 + eta) e^((1 + eta) u - k) D(lambda_s + u) du, k = (1 + eta) h, plus fresh
    noise of SD t sqrt(1 - e^(-2 eta h)): eta 0 is the deterministic probability flow, eta 1 the reverse SDE.
    D is taken at the middle of the step, extrapolated through this and the last step's prediction; the
    integral is then (1 - e^-k) D_mid. Fresh noise lets the denoiser correct at one level what it got wrong
    at the one before.
    """
    if eta > 0 and generators is None:
        raise AnatomicaError("the multistep sampler with eta > 0 needs one generator per sample")
    levels = sigmas.tolist()
    last: tuple[Tensor, float] | None = None
    for i, (sigma, sigma_next) in enumerate(itertools.pairwise(levels)):
        denoised = denoiser(z, z.new_full((len(z),), sigma))
        _report(callback, i, levels, z, denoised)
        if sigma_next == 0:  # h is infinite, and the prediction itself is the answer
            return denoised
        h = math.log(sigma / sigma_next)
        middle = denoised if last is None else denoised + h / (2 * last[1]) * (denoised - last[0])
        last = (denoised, h)
        kept = math.exp(-(1 + eta) * h)
        z = kept * z + (1 - kept) * middle
        if eta > 0 and generators is not None:
            z = z + sigma_next * math.sqrt(1 - math.exp(-2 * eta * h)) * draw_noise(generators, z)
    return z


def _report(callback: Callback | None, i: int, levels: list[float], z: Tensor, denoised: Tensor) -> None:
    if callback is not None:
        callback(Step(i, len(levels) - 1, levels[i], z, denoised))


METHODS = ("euler", "multistep", "stochastic")
RESTART = 6.0
"""The noise under which a latent keeps its layout (which vertebrae, how large a heart) and loses the rest."""


def noise_levels(config: SamplingConfig, *, started: bool = False) -> Float[Tensor, " levels"]:
    """The config's schedule; of samples that start in latents, from `RESTART` down."""
    sigmas = karras_schedule(config.steps, config.sigma_min, config.sigma_max, config.rho)
    return sigmas[sigmas <= max(RESTART, config.sigma_min)] if started else sigmas


def sample(
    denoiser: Denoiser,
    shape: tuple[int, int, int, int],
    seeds: Sequence[int],
    config: SamplingConfig,
    *,
    device: torch.device | str = "cpu",
    callback: Callback | None = None,
    start: Float[Tensor, "b c h w d"] | None = None,
) -> Float[Tensor, "b c h w d"]:
    """Clean standardised latents, one per seed, by the config's schedule and method.

    With `start`, variations of these: noised to the schedule's first level from `RESTART` down.
    """
    generators = seeded_generators(seeds)
    sigmas = noise_levels(config, started=start is not None)
    noise = draw_noise(generators, torch.empty(len(seeds), *shape, device=device))
    z = sigmas[0] * noise if start is None else start.to(noise) + sigmas[0] * noise
    if config.method == "euler":
        return sample_euler(denoiser, z, sigmas, generators=generators, callback=callback)
    if config.method == "multistep":
        return sample_multistep(denoiser, z, sigmas, generators=generators, callback=callback, eta=config.eta)
    if config.method == "stochastic":
        churn = {"s_churn": config.s_churn, "s_min": config.s_min}
        churn |= {"s_max": config.s_max, "s_noise": config.s_noise}
        return sample_stochastic(denoiser, z, sigmas, generators=generators, callback=callback, **churn)
    raise AnatomicaError(f"unknown sampler {config.method!r}; allowed: {', '.join(METHODS)}")


def sampling_to_dict(config: SamplingConfig) -> dict[str, Any]:
    """As JSON, which has no infinity: an absent upper bound of the churn range is null."""
    return asdict(config) | {"s_max": None if config.s_max == float("inf") else config.s_max}


def sampling_from_dict(values: Any) -> SamplingConfig:
    """The config written by `sampling_to_dict`; a value that is not allowed is an error that names it."""
    given = values
    if isinstance(values, dict) and values.get("s_max", 0) is None:
        given = {key: value for key, value in values.items() if key != "s_max"}
    config = from_dict(SamplingConfig, given)
    if not config.sigma_min < config.sigma_max or math.isnan(config.s_max):
        raise AnatomicaError(
            f"SamplingConfig: noise levels must satisfy sigma_min < sigma_max, found {config.sigma_min} and "
            f"{config.sigma_max}"
        )
    return config
