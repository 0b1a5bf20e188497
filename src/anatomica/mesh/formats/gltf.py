"""glTF (.glb): one mesh per tissue in its colour, for viewers and engines."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from anatomica.errors import AnatomicaError
from anatomica.files import write_atomic
from anatomica.mesh.surface import Surface

RAS_MM_TO_GLTF = np.array([[-1, 0, 0, 0], [0, 0, 1, 0], [0, 1, 0, 0], [0, 0, 0, 1000.0]]) / 1000.0
"""glTF counts metres with y up and z towards the viewer: the patient stands and looks at the viewer. The
points in the file are RAS mm; this is the matrix of the node above them."""


def write_gltf(path: Path, surface: Surface) -> None:
    """One closed mesh per tissue, named as in the label table."""
    try:
        import trimesh
        from trimesh.visual import TextureVisuals
        from trimesh.visual.material import PBRMaterial
    except ImportError:
        raise AnatomicaError("glTF needs trimesh: pip install 'anatomica[mesh]'") from None
    scene = trimesh.Scene()
    scene.graph.update(frame_to="RAS mm", frame_from=scene.graph.base_frame, matrix=RAS_MM_TO_GLTF)
    for name in surface.present():
        label = surface.table[name]
        triangles = surface.of(name)
        used, index = np.unique(triangles, return_inverse=True)
        part = trimesh.Trimesh(surface.vertices[used], index.reshape(-1, 3), process=False)
        material = PBRMaterial(
            name=name, baseColorFactor=[*label.colour, 255], metallicFactor=0.0, roughnessFactor=0.7
        )
        part.visual = TextureVisuals(material=material)
        scene.add_geometry(part, node_name=name, geom_name=name, parent_node_name="RAS mm")
    write_atomic(path, bytes(scene.export(file_type="glb")))  # type: ignore[arg-type]
