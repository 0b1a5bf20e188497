"""A BIDS derivative: one folder per virtual subject with its segmentation and names of labels."""

from __future__ import annotations

import csv
import io
import re
from pathlib import Path

from anatomica.anatomy.catalogue import anatomy
from anatomica.cohort.exports.patients import cases, consecutive, folders, label_maps, nifti_bytes
from anatomica.cohort.summary import Cohort, quantity_columns
from anatomica.files import write_atomic, write_json, write_text
from anatomica.version import __version__

VERSION = "1.9.0"


def export_bids(cohort: Cohort, out: Path) -> Path:
    """Write the derivative into `out`/bids and return that folder.

    Labels only: BIDS has a name for what each scanner makes, and none for an image made from labels.
    """
    folder = out / "bids"
    folders(folder)
    table = anatomy(cohort.plan.spec.anatomy).table
    found = cases(cohort)
    colours = ["#{:02x}{:02x}{:02x}".format(*table[name].colour) for name in table.tissues]
    names = [(i + 1, name, table[name].full_name, colours[i]) for i, name in enumerate(table.tissues)]
    for case, label_map in label_maps(cohort, found):
        subject = label(case.name)
        place = folder / f"sub-{subject}" / "anat"
        folders(place)
        stem = f"sub-{subject}_desc-virtual"
        write_atomic(place / f"{stem}_dseg.nii.gz", nifti_bytes(consecutive(label_map), label_map.affine))
        write_text(place / f"{stem}_dseg.tsv", _tsv(["index", "abbreviation", "name", "color"], names))
        about = {"Description": f"tissues of virtual patient {case.name}", "Manual": False, "Sources": []}
        write_json(place / f"{stem}_dseg.json", about | {"SpatialReference": "orig"})
    keys = quantity_columns(cohort)
    columns = [re.sub(r"\W+", "_", key).strip("_") for key in keys]
    rows = [
        [f"sub-{label(c.name)}", c.record["stratum"] or "n/a", "test" if c.test else "train"]
        + [c.record["quantities"].get(k, "n/a") for k in keys]
        for c in found
    ]
    write_text(folder / "participants.tsv", _tsv(["participant_id", "stratum", "part", *columns], rows))
    described = {name: {"Description": key} for name, key in zip(columns, keys, strict=True)}
    described |= {
        "stratum": {"Description": "part of the cohort"},
        "part": {"Description": "training or test"},
    }
    write_json(folder / "participants.json", described)
    made = {"Name": "anatomica", "Version": __version__, "Description": "virtual patients"}
    write_json(
        folder / "dataset_description.json",
        {
            "Name": cohort.plan.spec.name,
            "BIDSVersion": VERSION,
            "DatasetType": "derivative",
            "License": "n/a",
            "GeneratedBy": [made],
            "SourceDatasets": [],
        },
    )
    write_text(folder / "README", _readme(cohort, len(found)))
    return folder


def _readme(cohort: Cohort, patients: int) -> str:
    spec = cohort.plan.spec
    return (
        f"{spec.name}: {patients} virtual patients ({spec.anatomy}), drawn by anatomica {__version__}.\n"
        "No patient is real. Each has a segmentation (_dseg.nii.gz) and its labels' names (_dseg.tsv),\n"
        "and no image. participants.tsv has every patient's quantities; their units are in the names.\n"
    )


def label(name: str) -> str:
    """A BIDS label has letters and digits only.

    >>> label("dilated-aortas-000012")
    'dilatedaortas000012'
    """
    return re.sub(r"[^A-Za-z0-9]", "", name)


def _tsv(head: list[str], rows: list) -> str:
    text = io.StringIO()
    writer = csv.writer(text, delimiter="\t", lineterminator="\n")
    writer.writerow(head)
    writer.writerows(rows)
    return text.getvalue()
