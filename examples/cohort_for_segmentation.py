"""Does a cohort help to train a segmentation network? 200 virtual hearts against 20 "patients".

python examples/cohort_for_segmentation.py --out out/segmentation [--real FOLDER]

A small U-Net is trained twice for the same number of steps on images made from label maps: once on 20
phantoms, which stand for the few patients that one has, once on these and 200 hearts drawn by the shipped
model. Both are tested on held-out phantoms and, with --real, on a folder of real label maps with
TotalSegmentator's names, each by images made from its own labels. The table says whether the cohort helps.
"""

from __future__ import annotations

import argparse
from pathlib import Path

import numpy as np
import torch
from torch import Tensor, nn

from anatomica import ANATOMIES, LabelMap, load
from anatomica.anatomy.label_map import to_cube
from anatomica.cohort.drawing import open_drawing
from anatomica.cohort.engine import begin, carry_out
from anatomica.cohort.executors.local import LocalExecutor
from anatomica.cohort.exports.patients import cases, consecutive, label_maps
from anatomica.cohort.exports.synth import synthetic_image
from anatomica.cohort.maker import maker_of
from anatomica.cohort.plan import make_plan
from anatomica.cohort.spec import CohortSpec
from anatomica.cohort.summary import read_cohort
from anatomica.cohort.worker import Job
from anatomica.data.phantoms import phantom

HEART = ANATOMIES["cardiac"]
FIRST_PATIENT, FIRST_TEST = 810_000, 820_000
"""Phantoms from these numbers on are in no training set of the shipped model."""


class SmallUNet(nn.Module):
    """Two levels, 16 and 32 channels: trains in minutes on one core."""

    def __init__(self, classes: int, width: int = 16) -> None:
        super().__init__()
        self.down, self.deep = _block(1, width), _block(width, 2 * width)
        self.up, self.out = _block(3 * width, width), nn.Conv3d(width, classes, 1)

    def forward(self, x: Tensor) -> Tensor:
        fine = self.down(x)
        deep = self.deep(nn.functional.avg_pool3d(fine, 2))
        deep = nn.functional.interpolate(deep, scale_factor=2.0, mode="trilinear", align_corners=False)
        return self.out(self.up(torch.cat([fine, deep], dim=1)))


def _block(inside: int, outside: int) -> nn.Sequential:
    layers: list[nn.Module] = []
    for channels in (inside, outside):
        layers += [nn.Conv3d(channels, outside, 3, padding=1), nn.InstanceNorm3d(outside), nn.LeakyReLU(0.1)]
    return nn.Sequential(*layers)


def draw_hearts(folder: Path, size: int, workers: int, n: int) -> list[LabelMap]:
    """A cohort of valid hearts; a second run finds it and draws nothing."""
    spec = CohortSpec(name="hearts", anatomy="cardiac", size=size, seed=1, resolution=n)
    begin(make_plan(spec, maker_of(spec)), folder)
    carry_out(folder, LocalExecutor(Job(folder, open_drawing), workers))
    cohort = read_cohort(folder)
    return [label_map for _, label_map in label_maps(cohort, cases(cohort))]


def train(maps: list[LabelMap], steps: int, seed: int = 0) -> SmallUNet:
    """Cross-entropy with a new synthetic image of a random patient at every step."""
    torch.manual_seed(seed)
    network = SmallUNet(len(HEART.table))
    optimiser = torch.optim.AdamW(network.parameters(), lr=2e-3)
    rng = np.random.default_rng(seed)
    for step in range(steps):
        label_map = maps[int(rng.integers(len(maps)))]
        image = torch.from_numpy(synthetic_image(label_map, int(rng.integers(2**31))))[None, None]
        labels = torch.from_numpy(consecutive(label_map).astype(np.int64))[None]
        loss = nn.functional.cross_entropy(network(image), labels)
        optimiser.zero_grad()
        loss.backward()
        optimiser.step()
        if (step + 1) % 100 == 0:
            print(f"  step {step + 1}: cross-entropy {float(loss):.3f}", flush=True)
    return network.eval()


@torch.no_grad()
def dice(network: SmallUNet, maps: list[LabelMap]) -> tuple[float, float]:
    """Mean Dice over tissues that a case has, mean and standard error over cases."""
    found = []
    for number, label_map in enumerate(maps):
        truth = consecutive(label_map)
        image = torch.from_numpy(synthetic_image(label_map, 10**6 + number))[None, None]
        guess = network(image)[0].argmax(0).numpy()
        each = [
            2 * np.sum((guess == c) & (truth == c)) / (np.sum(guess == c) + np.sum(truth == c))
            for c in range(1, len(HEART.table))
            if (truth == c).any()
        ]
        found.append(float(np.mean(each)))
    return float(np.mean(found)), float(np.std(found) / np.sqrt(len(found)))


def real_hearts(folder: Path, n: int) -> list[LabelMap]:
    """Real label maps in the model's cube."""
    files = sorted(x for x in folder.iterdir() if x.is_dir() or x.name.endswith(".nii.gz"))
    return [to_cube(load(x, HEART, "totalsegmentator"), HEART, n) for x in files]


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--out", type=Path, default=Path("out/segmentation"))
    parser.add_argument("--real", type=Path)
    parser.add_argument("--hearts", type=int, default=200)
    parser.add_argument("--patients", type=int, default=20)
    parser.add_argument("--steps", type=int, default=600)
    parser.add_argument("--resolution", type=int, default=32)
    parser.add_argument("--workers", type=int, default=1)
    given = parser.parse_args()
    n = given.resolution
    hearts = draw_hearts(given.out / "cohort", given.hearts, given.workers, n)
    patients = [phantom("cardiac", FIRST_PATIENT + i, n).label_map for i in range(given.patients)]
    tests = {"held-out phantoms": [phantom("cardiac", FIRST_TEST + i, n).label_map for i in range(20)]}
    if given.real is not None:
        tests["real label maps"] = real_hearts(given.real, n)
    trained_on = {
        f"{len(patients)} patients": patients,
        f"{len(patients)} patients and {len(hearts)} virtual hearts": patients + hearts,
        f"{len(hearts)} virtual hearts": hearts,
    }
    lines = ["| trained on | " + " | ".join(tests) + " |", "|---|" + "---:|" * len(tests)]
    for name, maps in trained_on.items():
        print(f"training on {name}")
        network = train(maps, given.steps)
        scores = (dice(network, test) for test in tests.values())
        cells = " | ".join(f"{mean:.3f} ± {error:.3f}" for mean, error in scores)
        lines.append(f"| {name} | {cells} |")
    table = "\n".join(lines)
    print(f"\nDice, mean ± standard error over cases:\n\n{table}")


if __name__ == "__main__":
    main()
