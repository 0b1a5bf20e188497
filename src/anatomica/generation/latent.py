"""A sample's latent in a file beside its label map: from it the border between the voxels is found again."""

from __future__ import annotations

import hashlib
import json
from pathlib import Path
from typing import NamedTuple

import numpy as np
from jaxtyping import Float
from safetensors import SafetensorError, safe_open
from safetensors.torch import save
from torch import Tensor

from anatomica.anatomy.label_map import LabelMap
from anatomica.anatomy.nifti import stem
from anatomica.errors import AnatomicaError
from anatomica.files import DamagedError, opened, sealed, write_atomic
from anatomica.generation.sample import Sample
from anatomica.prior.zoo import Model

ABOUT = "anatomica"


class Latent(NamedTuple):
    """A standardised latent, the anatomy and hash of the model whose field decodes it, and a checksum of the
    label map that it was written with."""

    values: Float[Tensor, "c h w d"]
    anatomy: str
    model: str
    labels: str


def latent_path(label_map: Path) -> Path:
    """Where the latent of a label map's file lies: `x_latent.safetensors` beside `x.nii.gz`."""
    return label_map.parent / f"{stem(label_map)}_latent.safetensors"


def save_latent(label_map: Path, sample: Sample, model: Model) -> None:
    """Write a sample's latent beside the file of its label map."""
    values = sample.latent.float().contiguous()
    about = {"anatomy": model.anatomy, "model": model.hash, "labels": labels_hash(sample.label_map)}
    # One text: safetensors writes several in any order, and the same sample would give other bytes.
    told = {ABOUT: json.dumps(sealed(about | {"values": _values_hash(values)}), sort_keys=True)}
    write_atomic(latent_path(label_map), save({"latent": values}, told))


def read_latent(label_map: Path) -> Latent | None:
    """The latent beside a label map's file; None if there is none."""
    path = latent_path(label_map)
    if not path.is_file():
        return None
    try:
        with safe_open(path, framework="pt") as file:
            about = opened(json.loads((file.metadata() or {})[ABOUT]))
            values = file.get_tensor("latent")
        if "values" in about and _values_hash(values) != about["values"]:  # earlier versions wrote none
            raise DamagedError("its numbers are not those that were written")
        return Latent(values, about["anatomy"], about["model"], about["labels"])
    except (SafetensorError, KeyError, ValueError, TypeError, RecursionError) as error:
        reason = " ".join(str(error).split())
        raise AnatomicaError(f"{path} is not a latent of anatomica generate ({reason}); delete it") from None


def _values_hash(values: Tensor) -> str:
    """Names the exact numbers of a latent."""
    return hashlib.sha256(f"{tuple(values.shape)}".encode() + values.float().numpy().tobytes()).hexdigest()


def labels_hash(label_map: LabelMap) -> str:
    """Names the exact labels of a label map, whichever integer type and order of memory they have."""
    ids = np.ascontiguousarray(label_map.array, dtype="<i4")
    return hashlib.sha256(str(ids.shape).encode() + ids.tobytes()).hexdigest()[:16]
