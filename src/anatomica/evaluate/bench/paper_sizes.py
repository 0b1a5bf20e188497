"""The paper's partial-decoding tables in the paper's own sizes: guided steps of preset `paper`, timed once.

The weights are untrained: time depends on them only through persistence, a small part, and through the points
that need no decoding, of which none are left out here.
"""

from __future__ import annotations

from collections.abc import Callable

import torch

from anatomica.anatomy.catalogue import PAPER_GRID, anatomy
from anatomica.data.phantoms import phantom
from anatomica.evaluate.bench.steps import SIGMA, no_grad, on_grid
from anatomica.evaluate.bench.timing import Timed, interleaved
from anatomica.evaluate.experiments import paper
from anatomica.generation.resolve import constraints_for
from anatomica.guidance.gauss_newton import Settings
from anatomica.guidance.solver import Guidance
from anatomica.prior.autoencoder import Autoencoder
from anatomica.prior.edm import LatentScaler, build_denoiser
from anatomica.prior.presets import preset
from anatomica.prior.zoo import Model
from anatomica.spec import tasks
from anatomica.spec.spec import CartesianDomain, GlobalDomain, Spec

LEVELS: dict[str, int] = {"low": 32, "med.": 64, "high": 128}
GRIDS = tuple(LEVELS.values())
TOPOLOGY_GRIDS = (16, 32, 64, 128)
V = "Anatomica-V, gradient"
L = "Anatomica-L, gradient"
NEWTON = "Anatomica-L, Gauss-Newton"
APPROACHES = {"anatomica-l": f"{L}, coarse", "anatomica-v": f"{V}, global"}
PAPER = {
    "geometry": {
        f"{V if where == 'global' else L}, {where}, {LEVELS[level]}^3": row[-1]
        for (where, level), row in paper.PARTIAL_DECODING.items()
    },
    "topology": {f"{APPROACHES[key]}, {n}^3": x for (key, n), x in paper.TOPOLOGICAL_SPEED.items()},
}
"""The speeds that the paper prints, relative to Anatomica-V's."""


def run(name: str = "paper") -> dict[str, dict[str, dict[str, float | None]]]:
    """Seconds of a step by domain, decoder and grid, its speed relative to Anatomica-V's, and the paper's."""
    model = untrained(name)
    found = {}
    for kind, steps in steps_of(model).items():
        seconds = interleaved(steps, rounds=1, warm_up=False)
        printed = PAPER[kind] if model.n == PAPER_GRID else {}
        slowest = seconds[f"{V}, global, {model.n}^3"]
        found[kind] = {
            step: {"seconds": s, "speed": slowest / s, "paper": printed.get(step)}
            for step, s in seconds.items()
        }
    return found


def untrained(name: str) -> Model:
    """A cardiac model of a preset's sizes with random weights."""
    sizes, about = preset(name), anatomy("cardiac")
    torch.manual_seed(0)
    autoencoder = Autoencoder(len(about.table), sizes.autoencoder)
    latent = sizes.autoencoder
    denoiser = build_denoiser(latent.latent_channels, latent.latent_n, sizes.unet, sizes.edm)
    scaler = LatentScaler(sizes.autoencoder.latent_channels)
    for module in (autoencoder, denoiser):
        module.eval().requires_grad_(False).to(memory_format=torch.channels_last_3d)  # type: ignore[call-overload]
    parts = (autoencoder, denoiser, scaler, sizes.sampling)
    return Model(about, sizes.autoencoder.n, *parts, {}, "untrained")


def steps_of(model: Model) -> dict[str, Timed]:
    """The rows of the paper's two tables, and Gauss-Newton's beside them; grids finer than the model's voxels
    are left out."""
    reference = phantom(model.anatomy, 0, model.n).label_map
    z, sigma = torch.randn(1, *model.latent_shape), torch.full((1,), SIGMA)
    rv, atria = tasks.right_ventricle(), tasks.atrial_separation()
    newton = Guidance(newton=Settings(skip=0.0, grid=model.n))

    def step(spec: Spec, guidance: Guidance) -> Callable[[], object]:
        denoiser = guidance.denoiser(model, constraints_for(model, spec, reference))
        return no_grad(lambda: denoiser(z, sigma))

    grids = [n for n in GRIDS if n <= model.n]
    geometry: Timed = {"unguided": no_grad(lambda: model.denoiser(z, sigma))}
    for where, domain in (("local", CartesianDomain), ("coarse", GlobalDomain)):
        for n in grids:
            geometry[f"{L}, {where}, {n}^3"] = step(on_grid(rv, domain, n), Guidance("gradient", "L"))
    for n in grids[:2]:
        geometry[f"{NEWTON}, local, {n}^3"] = step(on_grid(rv, CartesianDomain, n), newton)
    full = f"{V}, global, {model.n}^3"
    geometry[full] = step(on_grid(rv, CartesianDomain, model.n), Guidance("gradient", "V"))

    topology: Timed = {}
    for n in (n for n in TOPOLOGY_GRIDS if n <= model.n):
        spec = on_grid(atria, GlobalDomain, n)
        topology[f"{L}, coarse, {n}^3"] = step(spec, Guidance("gradient", "L"))
        topology[f"{NEWTON}, coarse, {n}^3"] = step(spec, newton)
    topology[full] = step(on_grid(atria, GlobalDomain, model.n), Guidance("gradient", "V"))
    return {"geometry": geometry, "topology": topology}
