"""Before you use a model that was trained on with few patients: can it draw them, and does it only draw them?

Of each patient of the cache what the model's own autoencoder makes of it, and whether that is still like the
training patients. Of each sample the nearest training patient by Dice: as near as the autoencoder comes to a
patient is a copy, and as near as held-out patients come to training patients is none.

    python examples/own_data_check.py models/cardiac caches/hearts out/tuned
"""

import sys
from pathlib import Path

import torch

from anatomica import load, load_model
from anatomica.anatomy.nifti import label_maps_in
from anatomica.data.dataset import LabelMapDataset
from anatomica.evaluate.metrics.overlap import pairwise_dice
from anatomica.generation.plausibility import oddities
from anatomica.prior.field import decode_labels


def main(model_folder: Path, cache: Path, samples: Path) -> None:
    model = load_model(model_folder)
    classes, autoencoder = len(model.table), model.autoencoder
    train, held_out = (LabelMapDataset(cache, split, model.n) for split in ("train", "validation"))
    for patients in (train, held_out):
        for case, labels in zip(patients.cases, patients.load_all(), strict=True):
            with torch.inference_mode():
                again = decode_labels(autoencoder.field, autoencoder.encode(labels[None]).mean, model.n)
            dice = float(pairwise_dice(again, labels[None], classes))
            strange = [str(x) for x in oddities(model, model.label_map(again[0].numpy()))]
            print(f"{case.id} ({case.split}), redrawn: Dice {dice:.2f}", *strange, sep="; ")
    known, names = train.load_all(), [case.id for case in train.cases]
    made = [(p.name, load(p, model.about)) for p in label_maps_in(samples, model.about)]
    maps = [(name, torch.from_numpy(model.table.index[one.array])) for name, one in made]
    for name, labels in [*zip((c.id for c in held_out.cases), held_out.load_all(), strict=True), *maps]:
        dice = pairwise_dice(labels[None], known, classes)[0]
        print(f"{name}: nearest is {names[int(dice.argmax())]}, Dice {float(dice.max()):.2f}")


if __name__ == "__main__":
    main(*map(Path, sys.argv[1:]))
