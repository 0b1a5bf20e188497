"""Label names and colours as other programs keep them: Caret's XML, 3D Slicer's and ITK-SNAP's tables."""

from __future__ import annotations

from collections.abc import Iterable
from xml.etree import ElementTree

from anatomica.anatomy.labels import Colour, LabelTable

Names = dict[int, str]
Colours = dict[int, Colour]


def read_caret(extensions: Iterable[object]) -> tuple[Names, Colours]:
    """Names and colours from a Caret LabelTable among the contents of a NIfTI header's extensions.

    Empty if there is none or it is damaged: names are a help, and a file without them is still a label map.
    """
    names: Names = {}
    colours: Colours = {}
    for content in extensions:
        text = content.decode("utf-8", "replace") if isinstance(content, bytes) else str(content)
        if "<LabelTable" not in text or "<!" in text.replace("<![CDATA[", ""):
            continue  # no table, or one that defines words of its own, which can unfold to any size
        try:
            for label in ElementTree.fromstring(text.strip("\0 \n\r\t")).iter("Label"):
                id = int(label.attrib["Key"])
                if id > 0 and label.text:
                    names[id] = _printable(label.text)
                    red, green, blue = (
                        min(255, max(0, round(255 * float(label.attrib.get(c, "0.5")))))
                        for c in ("Red", "Green", "Blue")
                    )
                    colours[id] = (red, green, blue)
        except (ElementTree.ParseError, KeyError, ValueError, OverflowError):
            return {}, {}
    return names, colours


def _printable(name: str) -> str:
    """One line of at most 100 letters."""
    return " ".join("".join(c if c.isprintable() else " " for c in name).split())[:100] or "unnamed"


def caret_xml(table: LabelTable) -> str:
    """The Caret LabelTable that names the labels, background left out as TotalSegmentator does."""
    rows = []
    for x in table.labels[1:]:
        red, green, blue = (repr(c / 255) for c in x.colour)
        name = x.name.replace("]]>", "]]]]><![CDATA[>")
        colour = f'Red="{red}" Green="{green}" Blue="{blue}" Alpha="1"'
        rows.append(f'<Label Key="{x.id}" {colour}><![CDATA[{name}]]></Label>')
    return (
        '<?xml version="1.0" encoding="UTF-8"?><CaretExtension><VolumeInformation Index="0"><LabelTable>\n'
        + "\n".join(rows)
        + "\n</LabelTable><StudyMetaDataLinkSet></StudyMetaDataLinkSet>"
        "<VolumeType><![CDATA[Label]]></VolumeType></VolumeInformation></CaretExtension>"
    )


def slicer_colours(table: LabelTable, name: str) -> str:
    """A 3D Slicer colour table: id, name without spaces, red, green, blue, opacity."""
    rows = [f"# Color table {name}", f"# {len(table)} values"]
    for x in table.labels:
        red, green, blue = x.colour
        rows.append(f"{x.id} {'_'.join(x.full_name.split())} {red} {green} {blue} {255 if x.id else 0}")
    return "\n".join(rows) + "\n"


def itksnap_labels(table: LabelTable) -> str:
    """An ITK-SNAP label description file: id, red, green, blue, opacity, visible, in the mesh, "name"."""
    rows = ["# ITK-SnAP Label Description File", "# IDX   -R-  -G-  -B-  -A--  VIS MSH  LABEL"]
    for x in table.labels:
        shown = int(x.id != 0)
        red, green, blue = x.colour
        full_name = "Clear Label" if x.id == 0 else x.full_name.replace('"', "'")
        columns = f"{x.id:5d}  {red:4d} {green:4d} {blue:4d}  {shown:6.2f}  {shown:2d} {shown:2d}"
        rows.append(f'{columns}    "{full_name}"')
    return "\n".join(rows) + "\n"
