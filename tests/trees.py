"""Small data sets in the exact layouts of the public ones, broken files among them."""

from pathlib import Path

import nibabel as nib
import numpy as np
import TPTBox

from anatomica.anatomy.catalogue import ANATOMIES
from anatomica.anatomy.label_map import LabelMap
from anatomica.anatomy.vocabularies import VOCABULARIES

REAL_SPINE = Path(TPTBox.__file__).parent / "tests" / "sample_ct" / "sub-ct_seg-vert_label-22_msk.nii.gz"

# Tissue -> centre and radius in mm of a ball: the right tissues, volumes and gaps, nothing more.
HEART = {
    "Myo": ((-45, 0, 0), 26),
    "LA": ((10, -50, 30), 24),
    "LV": ((10, 10, -30), 28),
    "RA": ((-45, -45, -20), 25),
    "RV": ((60, 20, -20), 29),
    "Ao": ((0, 0, 60), 22),
    "PA": ((55, 0, 60), 18),
    "IVC": ((-40, -20, -70), 14),
    "SVC": ((-50, 20, 65), 11),
    "PV": ((60, -55, 20), 12),
}
TREE = {
    "Ao": ((0, 0, -30), 35),
    "BCT": ((-20, 10, 30), 9),
    "LCCA": ((25, 0, 50), 7),
    "RCCA": ((-40, 0, 60), 7),
    "LSCA": ((55, 0, 40), 9),
    "RSCA": ((-60, 0, 40), 9),
}
NAMES = {
    tissue: name
    for about in ANATOMIES.values()
    for name, tissue in VOCABULARIES["totalsegmentator"].tissues(about).items()
}


def balls(anatomy: str, where: dict, spacing_mm: float = 4.0, n: int = 60, seed: int = 0) -> LabelMap:
    """Balls at their places, shaken a little by the seed."""
    affine = np.diag([spacing_mm] * 3 + [1.0])
    affine[:3, 3] = -(n - 1) / 2 * spacing_mm
    line = np.arange(n) * spacing_mm + affine[0, 3]
    points = np.stack(np.meshgrid(line, line, line, indexing="ij"), -1)
    shake = np.random.default_rng(seed).uniform(-2, 2, (len(where), 3))
    table = ANATOMIES[anatomy].table
    array = np.zeros((n, n, n), np.uint8)
    for (tissue, (centre, radius)), move in zip(where.items(), shake, strict=True):
        array[((points - np.array(centre) - move) ** 2).sum(-1) < radius**2] = table.id_of(tissue)
    return LabelMap(array, affine, table)


def write(path: Path, array: np.ndarray, affine: np.ndarray) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    nib.save(nib.Nifti1Image(array.astype(np.uint8), affine), path)


def write_masks(folder: Path, label_map: LabelMap, tissues) -> None:
    """One mask a structure under TotalSegmentator's names, stored L-P-S as its files often are."""
    flip = np.diag([-1.0, -1.0, 1.0, 1.0])
    flip[:2, 3] = np.array(label_map.shape[:2]) - 1
    for tissue in tissues:
        mask = label_map.mask(tissue)[::-1, ::-1]
        write(folder / f"{NAMES[tissue]}.nii.gz", mask, label_map.affine @ flip)


def totalsegmentator(root: Path) -> Path:
    """Five good subjects in the three ways chambers come, and five bad ones."""
    chambers = ("Myo", "LA", "LV", "RA", "RV", "Ao", "PA")
    veins = ("IVC", "SVC", "PV")
    for seed in range(3):  # the high-resolution model's masks beside the data set's own
        heart = balls("cardiac", HEART, seed=seed)
        subject = root / f"s000{seed}"
        write_masks(subject / "segmentations", heart, veins)
        write(subject / "segmentations" / "heart.nii.gz", heart.array > 0, heart.affine)
        write(subject / "ct.nii.gz", heart.array * 0, heart.affine)
        write_masks(subject / "heartchambers_highres", heart, chambers)
        write(subject / "segmentations" / "aorta.nii.gz", heart.array * 0, heart.affine)  # must not be used
    heart = balls("cardiac", HEART, seed=3)  # version 1: chambers among the masks, with a speck to remove
    write_masks(root / "s0003" / "segmentations", heart, (*chambers, *veins))
    specked = heart.mask("LV")
    specked[1:3, 1:3, 1:3] = True
    write(root / "s0003" / "segmentations" / "heart_ventricle_left.nii.gz", specked, heart.affine)
    heart = balls("cardiac", HEART, seed=4)  # the model's output as one multi-label file
    write_masks(root / "s0004" / "segmentations", heart, veins)
    write(root / "s0004" / "heartchambers_highres.nii.gz", heart.array * (heart.array <= 7), heart.affine)

    write_masks(root / "s0010" / "segmentations", balls("cardiac", HEART), veins)  # no chambers anywhere
    broken = root / "s0011" / "segmentations"
    write_masks(broken, balls("cardiac", HEART), (*chambers, *veins))
    path = broken / "heart_atrium_left.nii.gz"
    path.write_bytes(path.read_bytes()[:60])
    write_masks(root / "s0012" / "segmentations", balls("cardiac", HEART), (*chambers, "SVC", "PV"))
    cut = balls("cardiac", HEART | {"LV": ((120, 10, -30), 28)})
    write_masks(root / "s0013" / "segmentations", cut, (*chambers, *veins))
    huge = balls("cardiac", HEART | {"SVC": ((-50, 20, 65), 30)})
    write_masks(root / "s0014" / "segmentations", huge, (*chambers, *veins))
    (root / "s0015" / "segmentations").mkdir(parents=True)
    rows = ["image_id;age;gender;split", *(f"{p.name};50;m;train" for p in sorted(root.iterdir()))]
    (root / "meta.csv").write_text("\n".join(rows) + "\n")
    return root


def aortas(root: Path, count: int = 3) -> Path:
    """TotalSegmentator subjects with the aorta and its branches."""
    for seed in range(count):
        write_masks(root / f"s{seed:04d}" / "segmentations", balls("aortic", TREE, seed=seed), TREE)
    return root


def spine(seed: int) -> LabelMap:
    """The real vertebrae L2-L4 of tptbox as they are stored, moved by a whole number of voxels."""
    image = nib.Nifti1Image.from_filename(REAL_SPINE)
    array = np.asarray(image.dataobj)
    array = np.roll(array, seed, axis=2)
    return LabelMap(array.astype(np.uint8), np.asarray(image.affine), ANATOMIES["spinal"].table)


def verse(root: Path, count: int = 2) -> Path:
    """VerSe's BIDS-like folders; one patient with two scans, an L6, and two broken files."""
    for seed in range(count):
        _verse(root, f"sub-verse{seed:03d}", "", spine(seed))
    _verse(root, "sub-verse401", "_split-verse253", spine(3))
    _verse(root, "sub-verse401", "_split-verse254", spine(4))
    sixth = spine(5)
    _verse(root, "sub-gl003", "_dir-ax", LabelMap(sixth.array, sixth.affine, sixth.table), {22: 25})
    _verse(root, "sub-verse900", "", spine(0), {22: 99})
    bad = root / "derivatives" / "sub-verse901" / "sub-verse901_seg-vert_msk.nii.gz"
    bad.parent.mkdir(parents=True)
    bad.write_bytes(b"\x1f\x8b broken")
    (root / "derivatives" / "sub-verse000" / "sub-verse000_seg-subreg_ctd.json").write_text("[]")
    write(root / "rawdata" / "sub-verse000" / "sub-verse000_ct.nii.gz", np.zeros((3, 3, 3)), np.eye(4))
    return root


def _verse(root: Path, patient: str, infix: str, label_map: LabelMap, swap: dict | None = None) -> None:
    array = label_map.array.copy()
    for old, new in (swap or {}).items():
        array[label_map.array == old] = new
    write(root / "derivatives" / patient / f"{patient}{infix}_seg-vert_msk.nii.gz", array, label_map.affine)


def ctspine1k(root: Path) -> Path:
    for subset, name in (
        ("COLONOG", "1.3.6.1.4.1.9328.50.4.0001"),
        ("MSD-T10", "liver_12"),
        ("HNSCC-3DCT-RT", "HN_P001"),
    ):
        label_map = spine(len(name))
        write(root / "raw_data" / "labels" / subset / f"{name}_seg.nii.gz", label_map.array, label_map.affine)
        write(
            root / "raw_data" / "volumes" / subset / f"{name}.nii.gz", label_map.array * 0, label_map.affine
        )
    empty = spine(0)
    write(
        root / "raw_data" / "labels" / "COVID-19" / "volume-covid19-A-0011_ct_seg.nii.gz",
        empty.array * 0,
        empty.affine,
    )
    return root


def pullbacks(root: Path, frames=(140, 86, 60), frame_mm: float = 0.15) -> Path:
    """Coronary pullbacks: a tube with a wall and a deposit, 50 x 50 pixels of 0.2 mm."""
    line = np.arange(50) * 0.2 - 4.9
    radius = np.hypot(line[:, None], line[None])
    plane = np.zeros((50, 50), np.uint8)
    plane[radius < 2.2] = 3
    plane[radius < 1.5] = 1
    for number, count in enumerate(frames):
        array = np.repeat(plane[:, :, None], count, axis=2)
        array[33:35, 24:28, 10 : count - 10] = 2
        array[33:35, 24:28, number * 7 :: 29] = 3
        write(root / f"P{number:03d}" / "pre.nii.gz", array, np.diag([0.2, 0.2, frame_mm, 1.0]))
    (root / "P099").mkdir()
    (root / "P099" / "pre.nii.gz").write_bytes(b"broken")
    return root


def tree_bytes(folder: Path) -> dict[str, bytes]:
    """Every file of a folder with its content."""
    return {
        p.relative_to(folder).as_posix(): p.read_bytes() for p in sorted(folder.rglob("*")) if p.is_file()
    }
