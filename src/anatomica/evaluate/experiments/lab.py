"""Everything that experiments draw on, opened when first used: models, patients, baselines, the cache."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass, field, replace
from pathlib import Path

import numpy as np
from jaxtyping import UInt8
from torch import Tensor

from anatomica.anatomy.label_map import LabelMap
from anatomica.data.cache import Half, half_of, open_cache
from anatomica.data.dataset import LabelMapDataset
from anatomica.errors import AnatomicaError
from anatomica.evaluate.baselines.conditioned import Baseline, Conditioning, folder_name, load_baseline
from anatomica.evaluate.experiments.store import load_arrays, save_arrays
from anatomica.evaluate.metrics.clouds import tissue_clouds
from anatomica.evaluate.metrics.frechet import morphology
from anatomica.evaluate.metrics.quality import Patients
from anatomica.prior.zoo import Model, load_model


@dataclass(eq=False)
class Lab:
    """Where things are. `models` and `data` hold one folder per anatomy; without them the shipped weights and
    phantoms are used. Held-out phantoms are those that the split by the patient's id never trains on. Targets
    are one `half` of them: methods are tuned on development patients, tables are made of test patients. With
    `eta` models are sampled with this much fresh noise instead of their own."""

    cache: Path
    baselines: Path
    phantoms: int
    data: Path | None = None
    models: Path | None = None
    eta: float | None = None
    quiet: bool = False
    half: Half = "test"
    _models: dict[str, Model] = field(default_factory=dict)
    _patients: dict[tuple[str, str], Patients] = field(default_factory=dict)
    _baselines: dict[tuple[str, str], Baseline | None] = field(default_factory=dict)

    def model(self, anatomy: str) -> Model:
        if anatomy not in self._models:
            named = anatomy if self.models is None else self.models / anatomy
            model = load_model(named)
            eta = model.sampling.eta if self.eta is None else self.eta
            self._models[anatomy] = replace(model, sampling=replace(model.sampling, eta=eta))
        return self._models[anatomy]

    def has_model(self, anatomy: str) -> bool:
        try:
            self.model(anatomy)
        except AnatomicaError:
            return False
        return True

    def baseline(self, task: str, conditioning: Conditioning, anatomy: str) -> Baseline | None:
        """The trained baseline, or None if there is none."""
        key = (task, conditioning)
        if key not in self._baselines:
            run = self.baselines / folder_name(*key)
            there = (run / "checkpoint.safetensors").is_file()
            self._baselines[key] = load_baseline(run, self.model(anatomy)) if there else None
        return self._baselines[key]

    def training(self, anatomy: str) -> Patients:
        return self._split(anatomy, "train")

    def held_out(self, anatomy: str) -> Patients:
        return self._split(anatomy, "validation")

    def asked(self, anatomy: str) -> Patients:
        """The held-out patients that targets are taken from."""
        return self._half(anatomy, targets=True)

    def others(self, anatomy: str) -> Patients:
        """The other held-out patients: a sample should look real, not be near its own target."""
        return self._half(anatomy, targets=False)

    def _half(self, anatomy: str, targets: bool) -> Patients:
        real = self.held_out(anatomy)
        rows = [i for i, id in enumerate(real.ids) if (half_of(id) == self.half) == targets]
        return real.at(rows)

    def source(self, anatomy: str) -> str:
        """Where the anatomy's patients come from: phantoms, totalsegmentator, ..."""
        return str(open_cache(self._folder(anatomy)).settings.get("source", "unknown"))

    def label_map(self, anatomy: str, labels: UInt8[Tensor, "n n n"]) -> LabelMap:
        """Label indices as a label map in the model's frame."""
        return self.model(anatomy).label_map(labels.numpy())

    def _split(self, anatomy: str, split: str) -> Patients:
        key = (anatomy, split)
        if key not in self._patients:
            model = self.model(anatomy)
            found = LabelMapDataset(self._folder(anatomy), split, model.n)  # type: ignore[arg-type]
            maps, classes = found.load_all(), len(model.table)
            features, clouds = self._described(maps, classes)
            self._patients[key] = Patients(tuple(c.id for c in found.cases), maps, features, clouds)
        return self._patients[key]

    def _folder(self, anatomy: str) -> Path:
        """The anatomy's cache of patients; phantoms are drawn if no caches are given."""
        if self.data is not None:
            if not (self.data / anatomy / "manifest.json").is_file():
                raise AnatomicaError(
                    f"{self.data} has no cache of {anatomy} anatomy; see `anatomica prepare`"
                )
            return self.data / anatomy
        from anatomica.data.sources.phantoms import build_phantom_cache

        folder = self.cache / f"phantoms-{self.phantoms}" / anatomy
        if not (folder / "manifest.json").is_file():
            n = max(32, self.model(anatomy).n)
            build_phantom_cache(anatomy, self.phantoms, folder, n, progress=not self.quiet)
        return folder

    def _described(self, maps: Tensor, classes: int) -> tuple[np.ndarray, np.ndarray]:
        """Morphology and clouds of real cases, kept in the cache: they take a second for ten patients."""
        key = hashlib.sha256(maps.numpy().tobytes()).hexdigest()[:24]
        path = self.cache / "patients" / f"{key}.npz"
        kept = load_arrays(path)
        if kept is not None and kept.keys() == {"morphology", "clouds"}:
            return kept["morphology"], kept["clouds"]
        features = morphology(maps, classes)
        clouds = np.stack([tissue_clouds(m, classes) for m in maps])
        save_arrays(path, morphology=features, clouds=clouds)
        return features, clouds
