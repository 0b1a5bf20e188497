"""What the targets of the fuzzer share: undamaged things, made once, and what must be true of a refusal."""

from __future__ import annotations

from pathlib import Path
from types import TracebackType
from typing import NamedTuple

import numpy as np
import torch

from anatomica.anatomy.catalogue import ANATOMIES
from anatomica.anatomy.frame import Frame
from anatomica.anatomy.label_map import LabelMap, cube_affine
from anatomica.anatomy.nifti import encode, save
from anatomica.data import build_phantom_cache
from anatomica.errors import AnatomicaError
from anatomica.generation.draw import generate
from anatomica.generation.latent import save_latent
from anatomica.generation.options import Options
from anatomica.generation.recipe import Arguments, make_recipe
from anatomica.generation.resolve import resolve_for
from anatomica.prior.zoo import Model, load_model
from anatomica.spec.yaml import parse_spec
from tiny_prior import save_tiny_model

CORONARY = ANATOMIES["coronary"]
CORONARY_FRAME = Frame.model(CORONARY, 16)
MOST_LETTERS = 1000
SPEC = """name: wide vessel
anatomy: coronary
constraints:
- name: wall
  structure: [Ve]
  domain: {family: global, grid: [8, 8, 8]}
  target: {volume_ml: 0.4, centroid_mm: [0, 0, 0], betti: {b0: 1}}
  tolerance: {mass_percent: 2}
- name: middle
  structure: [Lu]
  domain: {family: box, grid: [4, 4, 4], centre_mm: [0, 0, 0], size_mm: [3, 3, 3]}
  target: {mass: 0.001, shape: [0.4, 0.3, 0.3, 0, 0, 0]}
"""


class Wrong(AssertionError):
    """A silent wrong answer, or a message that does not say enough."""


class Refusing:
    """An AnatomicaError in the body must be one line that names `name`; other exceptions pass through."""

    def __init__(self, name: str) -> None:
        self.name, self.refused = name, False

    def __enter__(self) -> Refusing:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> bool:
        if not isinstance(error, AnatomicaError):
            return False
        check_sentence(str(error), self.name)
        self.refused = True
        return True


def check_sentence(said: str, name: str = "") -> None:
    """What is wrong must be said in one line that is not endless and names the file or field."""
    if len(said.splitlines()) != 1 or name not in said or len(said) > MOST_LETTERS:
        raise Wrong(f"does not name {name!r} in one line: {said[:300]!r}")


class Inputs(NamedTuple):
    """Undamaged things; `folder` is free to be written to."""

    folder: Path
    label_map: LabelMap
    nifti: bytes
    plain: bytes
    model: dict[str, bytes]
    weights: torch.Tensor
    report: dict
    cache: dict[str, bytes]
    cases: dict[str, np.ndarray]
    sample: dict[str, bytes]
    """A sample's label map and its latent."""


def inputs(folder: Path) -> Inputs:
    rng = np.random.default_rng(0)
    array = np.zeros((12, 10, 9), np.uint8)
    array[2:9, 2:8, 2:7] = rng.choice(CORONARY.table.ids[:4], (7, 6, 5))
    label_map = LabelMap(array, cube_affine(CORONARY.edge_mm, 12), CORONARY.table)
    model = save_tiny_model(folder / "first", patients=25)
    prior = load_model(model)
    spec = parse_spec(SPEC)
    recipe = make_recipe(prior, spec, resolve_for(prior, spec), Arguments(samples=2))
    cache = build_phantom_cache("coronary", 3, folder / "whole", n=32)
    (sample,) = generate(prior, seeds=[0], options=Options(steps=1, tries=1))
    path = folder / "sampled" / "a.nii.gz"
    save(sample.label_map, path)
    save_latent(path, sample, prior)
    return Inputs(
        folder,
        label_map,
        encode(label_map),
        encode(label_map, compress=False),
        files(model),
        weights(prior),
        {"schema": "anatomica.report/1", "recipe": recipe, "samples": []},
        files(cache.folder),
        {case.id: cache.load(case).array for case in cache.cases},
        files(path.parent),
    )


def files(folder: Path) -> dict[str, bytes]:
    """Every file of a folder by its path in it."""
    return {p.relative_to(folder).as_posix(): p.read_bytes() for p in folder.rglob("*") if p.is_file()}


def put(folder: Path, content: dict[str, bytes]) -> None:
    """The opposite; only what differs is written."""
    for name, data in content.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(data)


def weights(model: Model) -> torch.Tensor:
    """Everything that a model computes with, as one row of numbers."""
    parts = (model.autoencoder, model.denoiser, model.scaler)
    tensors = [x.flatten().float() for part in parts for x in part.state_dict().values()]
    assert model.population is not None
    return torch.cat([*tensors, model.population.nan_to_num().flatten()])
