"""An nnU-Net v2 raw data set: imagesTr, labelsTr, imagesTs, labelsTs and dataset.json.

Labels are consecutive, as nnU-Net wants them; labelsTs is not read by nnU-Net but by whoever evaluates.
"""

from __future__ import annotations

from pathlib import Path

from anatomica.cohort.exports.patients import cases, consecutive, folders, label_maps, nifti_bytes
from anatomica.cohort.exports.synth import synthetic_image
from anatomica.cohort.summary import Cohort
from anatomica.files import write_atomic, write_json
from anatomica.version import __version__

NUMBER = 800
"""Of the data set, in the range that nnU-Net leaves to users."""


def export_nnunet(cohort: Cohort, out: Path, images: bool) -> Path:
    """Write the data set into `out`/DatasetNNN_Name and return that folder; without images only labels."""
    about = _table(cohort)
    folder = out / f"Dataset{NUMBER}_{cohort.plan.spec.name}"
    parts = {False: "Tr", True: "Ts"}
    folders(*(folder / f"{kind}{part}" for kind in ("images", "labels") for part in parts.values()))
    found = cases(cohort)
    for case, label_map in label_maps(cohort, found):
        part = parts[case.test]
        labels = nifti_bytes(consecutive(label_map), label_map.affine)
        write_atomic(folder / f"labels{part}" / f"{case.name}.nii.gz", labels)
        if images:
            image = nifti_bytes(synthetic_image(label_map, case.seed), label_map.affine)
            write_atomic(folder / f"images{part}" / f"{case.name}_0000.nii.gz", image)
    write_json(
        folder / "dataset.json",
        {
            "channel_names": {"0": "synthetic"},
            "labels": {"background": 0, **{name: i + 1 for i, name in enumerate(about)}},
            "numTraining": sum(not c.test for c in found),
            "file_ending": ".nii.gz",
            "name": cohort.plan.spec.name,
            "description": f"virtual patients ({cohort.plan.spec.anatomy}), anatomica {__version__}",
        },
    )
    return folder


def _table(cohort: Cohort) -> tuple[str, ...]:
    from anatomica.anatomy.catalogue import anatomy

    return anatomy(cohort.plan.spec.anatomy).table.tissues
