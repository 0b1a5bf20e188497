"""A MONAI datalist: datalist.json beside images and labels, with paths relative to it."""

from __future__ import annotations

from pathlib import Path

from anatomica.anatomy.catalogue import anatomy
from anatomica.cohort.exports.patients import cases, consecutive, folders, label_maps, nifti_bytes
from anatomica.cohort.exports.synth import synthetic_image
from anatomica.cohort.summary import Cohort
from anatomica.files import write_atomic, write_json


def export_monai(cohort: Cohort, out: Path, images: bool) -> Path:
    """Write the data set into `out`/monai and return that folder; without images, items have only labels."""
    folder = out / "monai"
    folders(folder / "labels", *([folder / "images"] if images else []))
    parts: dict[str, list[dict[str, str]]] = {"training": [], "testing": []}
    for case, label_map in label_maps(cohort, cases(cohort)):
        item = {"label": f"labels/{case.name}.nii.gz"}
        write_atomic(folder / item["label"], nifti_bytes(consecutive(label_map), label_map.affine))
        if images:
            item = {"image": f"images/{case.name}.nii.gz"} | item
            image = nifti_bytes(synthetic_image(label_map, case.seed), label_map.affine)
            write_atomic(folder / item["image"], image)
        parts["testing" if case.test else "training"].append(item)
    table = anatomy(cohort.plan.spec.anatomy).table
    write_json(
        folder / "datalist.json",
        {
            "name": cohort.plan.spec.name,
            "labels": {str(i): name for i, name in enumerate(("background", *table.tissues))},
            "modality": {"0": "synthetic"},
            **parts,
        },
    )
    return folder
