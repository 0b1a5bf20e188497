"""FEBio (.feb, specification 4.0): nodes, one tet4 domain per tissue, and the surfaces between tissues."""

from __future__ import annotations

from pathlib import Path
from xml.etree import ElementTree

import numpy as np

from anatomica.files import write_atomic
from anatomica.mesh.tetrahedra import Tetrahedra


def write_febio(path: Path, mesh: Tetrahedra) -> None:
    """The mesh of a model: materials are placeholders to be replaced, loads and steps are to be added.

    Lengths are mm. Domains have the tissues' names; a surface `A_B` parts tissue A from tissue B,
    `A_outside` is where A ends, normals out of A.
    """
    root = ElementTree.Element("febio_spec", version="4.0")
    ElementTree.SubElement(root, "Module", type="solid")
    names = mesh.present()
    materials = ElementTree.SubElement(root, "Material")
    for number, name in enumerate(names, start=1):
        # FEBio reads no domain without a material. The numbers are no tissue's: unit stiffness, nu = 0.3.
        material = ElementTree.SubElement(
            materials, "material", id=str(number), name=name, type="neo-Hookean"
        )
        for key, value in (("density", 1), ("E", 1), ("v", 0.3)):
            ElementTree.SubElement(material, key).text = str(value)
    body = ElementTree.SubElement(root, "Mesh")
    nodes = ElementTree.SubElement(body, "Nodes", name="all")
    for number, point in enumerate(mesh.vertices.tolist(), start=1):
        ElementTree.SubElement(nodes, "node", id=str(number)).text = _list(point)
    domains = ElementTree.SubElement(root, "MeshDomains")
    number = 0
    for name in names:
        part = ElementTree.SubElement(body, "Elements", type="tet4", name=name)
        for corners in (mesh.tetrahedra[mesh.material == mesh.table.id_of(name)] + 1).tolist():
            number += 1
            ElementTree.SubElement(part, "elem", id=str(number)).text = _list(corners)
        ElementTree.SubElement(domains, "SolidDomain", name=name, mat=name)
    corners, sides, _ = mesh.faces()
    for pair in np.unique(sides, axis=0):
        first, second = (mesh.table.by_id(int(i)).name if i else "outside" for i in pair)
        part = ElementTree.SubElement(body, "Surface", name=f"{first}_{second}")
        for n, corner in enumerate((corners[(sides == pair).all(axis=1)] + 1).tolist(), start=1):
            ElementTree.SubElement(part, "tri3", id=str(n)).text = _list(corner)
    ElementTree.indent(root, " ")
    write_atomic(path, ElementTree.tostring(root, encoding="ISO-8859-1", xml_declaration=True))


def _list(values: list) -> str:
    return ",".join(f"{x:.9g}" if isinstance(x, float) else str(x) for x in values)
