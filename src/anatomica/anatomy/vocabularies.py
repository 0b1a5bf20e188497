"""Vocabularies: the labels of tools and data sets, as they number and name them.

The anatomy says which of our tissues such a label is, by a tissue's short name, full name or synonyms.
A label that the wanted anatomy does not have becomes background.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from anatomica.anatomy.catalogue import ANATOMIES, Anatomy
from anatomica.anatomy.labels import BACKGROUND
from anatomica.anatomy.strict_yaml import read_text, read_yaml
from anatomica.errors import AnatomicaError, shown

UserMapping = Mapping[str | int, str]
REST = "*"
"""Key of a user's mapping that stands for every label it does not name."""


@dataclass(frozen=True)
class Vocabulary:
    """One tool's or data set's labels: `ids` as it writes them, `others` further names without an id."""

    name: str
    what: str
    ids: dict[int, str]
    others: tuple[str, ...] = ()

    def knows(self, name: str) -> bool:
        return name in self.others or name in self.ids.values()

    def tissues(self, anatomy: Anatomy) -> dict[str, str]:
        """Its names that are tissues of the anatomy, with our short names."""
        found = {name: anatomy.table.find(name) for name in (*self.ids.values(), *self.others)}
        return {name: label.name for name, label in found.items() if label is not None and label.id != 0}


def _numbered(names: str, start: int = 1) -> dict[int, str]:
    return dict(enumerate(names.split(), start=start))


_VERTEBRAE = ANATOMIES["spinal"].table.tissues

_TOTAL_V2 = _numbered(
    "spleen kidney_right kidney_left gallbladder liver stomach pancreas adrenal_gland_right "
    "adrenal_gland_left lung_upper_lobe_left lung_lower_lobe_left lung_upper_lobe_right "
    "lung_middle_lobe_right lung_lower_lobe_right esophagus trachea thyroid_gland small_bowel duodenum colon "
    "urinary_bladder prostate kidney_cyst_left kidney_cyst_right sacrum vertebrae_S1 "
    + " ".join(f"vertebrae_{v}" for v in reversed(_VERTEBRAE))
    + " heart aorta pulmonary_vein brachiocephalic_trunk subclavian_artery_right subclavian_artery_left "
    "common_carotid_artery_right common_carotid_artery_left brachiocephalic_vein_left "
    "brachiocephalic_vein_right atrial_appendage_left superior_vena_cava inferior_vena_cava "
    "portal_vein_and_splenic_vein iliac_artery_left iliac_artery_right iliac_vena_left iliac_vena_right "
    "humerus_left humerus_right scapula_left scapula_right clavicula_left clavicula_right femur_left "
    "femur_right hip_left hip_right spinal_cord gluteus_maximus_left gluteus_maximus_right "
    "gluteus_medius_left gluteus_medius_right gluteus_minimus_left gluteus_minimus_right autochthon_left "
    "autochthon_right iliopsoas_left iliopsoas_right brain skull "
    + " ".join(f"rib_{side}_{n}" for side in ("left", "right") for n in range(1, 13))
    + " sternum costal_cartilages"
)

_HEARTCHAMBERS = _numbered(
    "heart_myocardium heart_atrium_left heart_ventricle_left heart_atrium_right heart_ventricle_right aorta "
    "pulmonary_artery"
)

_SPINE_IDS = dict(enumerate(_VERTEBRAE, start=1))

VOCABULARIES: dict[str, Vocabulary] = {
    v.name: v
    for v in (
        Vocabulary(
            "totalsegmentator",
            "TotalSegmentator v2, task total: 117 labels or one mask per structure",
            _TOTAL_V2,
            tuple(_HEARTCHAMBERS.values()),  # version 1 has these in the same task
        ),
        Vocabulary(
            "heartchambers_highres",
            "TotalSegmentator v2, task heartchambers_highres: 1 myocardium ... 7 pulmonary artery",
            _HEARTCHAMBERS,
        ),
        Vocabulary(
            "ctspine1k",
            "CTSpine1K: 1-24 are C1-L5; 25 L6 and 26 sacrum become background",
            _SPINE_IDS | {25: "L6", 26: "sacrum"},
        ),
        Vocabulary(
            "verse",
            "VerSe 2019 and 2020: 1-24 are C1-L5; 25 L6, 26 sacrum, 27 coccyx, 28 T13 become background",
            _SPINE_IDS | {25: "L6", 26: "sacrum", 27: "coccyx", 28: "T13"},
        ),
        Vocabulary(
            "disrupt-cad",
            "DISRUPT-CAD optical coherence tomography: 1 lumen, 2 calcium, 3 vessel wall",
            {1: "lumen", 2: "calcium", 3: "vessel_wall"},
            ("wall", "vessel"),
        ),
    )
}


def resolve(mapping: str | Path | UserMapping | Vocabulary | None) -> Vocabulary | UserMapping | None:
    """What the user wrote for `--labels`: a vocabulary's name, a YAML file, or a mapping already in hand."""
    if not isinstance(mapping, str | Path):
        return mapping
    if str(mapping) in VOCABULARIES:
        return VOCABULARIES[str(mapping)]
    if Path(mapping).is_file():
        return read_mapping(Path(mapping))
    raise AnatomicaError(
        f"label mapping {str(mapping)!r} is neither a YAML file nor one of the known vocabularies: "
        f"{', '.join(VOCABULARIES)}"
    )


def read_mapping(path: Path) -> UserMapping:
    """A user's mapping from YAML: `source label id or mask name: our tissue`, one per line.

    `background` drops a label; the key `"*"` stands for all labels that the mapping does not name.
    """
    content = read_yaml(read_text(path, "label mapping"), str(path))
    bad = not isinstance(content, dict) or [
        k
        for k, v in content.items()
        if isinstance(k, bool) or not isinstance(k, str | int) or not isinstance(v, str)
    ]
    if bad or not content:
        raise AnatomicaError(
            f"{path}: a label mapping has lines like `5: RV` or `heart_ventricle_right: RV`"
            + (f"; not so: {shown(bad)}" if isinstance(bad, list) else "")
        )
    keys = Counter(str(key).lower() for key in content)
    key, times = keys.most_common(1)[0]
    if times > 1:
        raise AnatomicaError(f"{path}: the label {shown(key)} has {times} lines; which of them is meant?")
    return content


def translate(
    found: Mapping[int, str | None],
    anatomy: Anatomy,
    mapping: Vocabulary | UserMapping | None,
    what: str,
) -> dict[int, str]:
    """Our tissue (or `background`) for each label of a file: `found` maps its ids to their names, if known.

    Masks of a folder, which have only names, come with negative ids.

    Without a mapping, names decide where the file brings them (our own tissues, else the one vocabulary that
    knows them all); without names the ids must be the anatomy's own. Names win over ids in a vocabulary too,
    because tools renumber their labels between versions.
    """
    if not found:
        return {}
    if mapping is None:
        mapping = _detect(found, anatomy, what)
    if isinstance(mapping, Vocabulary):
        tissues = _by_vocabulary(found, anatomy, mapping, what)
        source = f"the vocabulary {mapping.name!r}"
    else:
        tissues = _by_user(found, anatomy, mapping, what)
        source = "the mapping"
    if set(tissues.values()) <= {BACKGROUND}:
        raise AnatomicaError(
            f"{what}: by {source}, none of its labels ({_listed(found)}) is a tissue of the {anatomy.name} "
            f"anatomy ({', '.join(anatomy.table.tissues)})"
        )
    return tissues


def _detect(found: Mapping[int, str | None], anatomy: Anatomy, what: str) -> Vocabulary | UserMapping:
    names = [name for name in found.values() if name is not None]
    if len(names) == len(found):
        if all(anatomy.table.find(name) is not None for name in names):
            return {name: anatomy.table[name].name for name in names}
        for vocabulary in VOCABULARIES.values():
            if all(vocabulary.knows(name) for name in names):
                return vocabulary
    elif not names and set(found) <= set(anatomy.table.ids):
        return {id: anatomy.table.by_id(id).name for id in found}
    strange = {i: n for i, n in found.items() if n is not None or i not in anatomy.table.ids}
    raise AnatomicaError(
        f"{what}: cannot tell which tissues of the {anatomy.name} anatomy these labels are: "
        f"{_listed(strange)}; name their vocabulary by --labels ({', '.join(VOCABULARIES)} or a YAML file)"
    )


def _by_vocabulary(
    found: Mapping[int, str | None], anatomy: Anatomy, vocabulary: Vocabulary, what: str
) -> dict[int, str]:
    ours = vocabulary.tissues(anatomy)
    tissues: dict[int, str] = {}
    unknown: dict[int, str | None] = {}
    for id, name in found.items():
        known = name if name is not None and vocabulary.knows(name) else vocabulary.ids.get(id)
        if known is None or (name is not None and not vocabulary.knows(name)):
            unknown[id] = name
        else:
            tissues[id] = ours.get(known, BACKGROUND)
    if unknown:
        raise AnatomicaError(
            f"{what}: the vocabulary {vocabulary.name!r} does not know the labels {_listed(unknown)}; "
            'give a YAML mapping by --labels that names them ("*": background drops the rest)'
        )
    return tissues


def _by_user(
    found: Mapping[int, str | None], anatomy: Anatomy, mapping: UserMapping, what: str
) -> dict[int, str]:
    wanted: dict[str, str] = {}
    for key, tissue in mapping.items():
        try:
            wanted[str(key).lower()] = anatomy.table[tissue].name
        except AnatomicaError as error:
            raise AnatomicaError(f"label mapping, line `{key}: {tissue}`: {error}, {BACKGROUND}") from None
    tissues: dict[int, str] = {}
    unknown: dict[int, str | None] = {}
    named = 0
    for id, name in found.items():
        own = ("" if id < 0 else str(id), "" if name is None else name.lower())
        keys = [k for k in own if k and k in wanted]
        named += bool(keys)
        if keys or REST in wanted:
            tissues[id] = wanted[keys[-1] if keys else REST]
        else:
            unknown[id] = name
    if not named:
        raise AnatomicaError(
            f"{what}: the mapping names none of its labels; the file has {_listed(found)}, the mapping names "
            f"{', '.join(map(str, mapping))}"
        )
    if unknown:
        raise AnatomicaError(
            f"{what}: the mapping leaves the labels {_listed(unknown)} out; add them, or a line "
            '"*": background to drop them'
        )
    return tissues


def _listed(found: Mapping[int, str | None], most: int = 12) -> str:
    """Labels for an error message: `5 (heart), 7, ...`; masks of a folder have no ids, so only names."""
    parts = []
    for id, name in sorted(found.items(), key=lambda x: abs(x[0])):
        parts.append(str(id) if name is None else name if id < 0 else f"{id} ({name})")
    return ", ".join(parts[:most]) + (f" and {len(parts) - most} more" if len(parts) > most else "")
