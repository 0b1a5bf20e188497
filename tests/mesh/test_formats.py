"""Files: each is read back by a reader that did not write it."""

import json
from xml.etree import ElementTree

import numpy as np
import pytest
import vtk  # pyright: ignore[reportMissingImports]
from vtk.util.numpy_support import vtk_to_numpy  # pyright: ignore[reportMissingImports]

from anatomica.mesh.centreline import centrelines, write_centrelines
from anatomica.mesh.formats import SURFACES, VOLUMES, materials, write_surface, write_volume
from anatomica.mesh.topology import topology


def read(path, reader):
    reader.SetFileName(str(path))
    reader.Update()
    return reader.GetOutput()


def arrays(data) -> dict[str, np.ndarray]:
    return {data.GetArrayName(i): vtk_to_numpy(data.GetArray(i)) for i in range(data.GetNumberOfArrays())}


def points(data) -> np.ndarray:
    return vtk_to_numpy(data.GetPoints().GetData())


def space(data) -> str:
    return data.GetFieldData().GetAbstractArray("SPACE").GetValue(0)


def test_stl_is_one_closed_surface_per_tissue(surface, tmp_path) -> None:
    import trimesh

    paths = write_surface(tmp_path, "patient", surface, "stl")
    assert [p.name for p in paths] == ["patient-lumen.stl", "patient-wall.stl", "patient-lump.stl"]
    for path, name in zip(paths, surface.present(), strict=True):
        assert b"SPACE=RAS" in path.read_bytes()[:80]
        mesh = trimesh.load(path)
        assert isinstance(mesh, trimesh.Trimesh)
        assert mesh.is_watertight
        assert mesh.volume / 1000 == pytest.approx(surface.volume_ml(name), rel=1e-5)
        np.testing.assert_allclose(
            mesh.bounds[0], surface.vertices[np.unique(surface.of(name))].min(0), atol=1e-5
        )


def test_ply_keeps_both_sides(surface, tmp_path) -> None:
    (path,) = write_surface(tmp_path, "patient", surface, "ply")
    reader = vtk.vtkPLYReader()
    data = read(path, reader)
    comments = [reader.GetComments().GetValue(i) for i in range(reader.GetComments().GetNumberOfValues())]
    assert any("SPACE=RAS" in c for c in comments)
    np.testing.assert_allclose(points(data), surface.vertices, rtol=1e-6)
    import trimesh

    mesh = trimesh.load(path, process=False)
    assert isinstance(mesh, trimesh.Trimesh)
    np.testing.assert_array_equal(mesh.faces, surface.triangles)
    ply = mesh.metadata["_ply_raw"]["face"]["data"]
    np.testing.assert_array_equal(
        np.column_stack([ply["inside"], ply["outside"]]).reshape(-1, 2), surface.sides
    )


def test_vtp_has_the_sides_as_cell_arrays(surface, tmp_path) -> None:
    (path,) = write_surface(tmp_path, "patient", surface, "vtp")
    data = read(path, vtk.vtkXMLPolyDataReader())
    assert space(data) == "RAS"
    np.testing.assert_array_equal(points(data), surface.vertices)
    found = arrays(data.GetCellData())
    np.testing.assert_array_equal(np.column_stack([found["inside"], found["outside"]]), surface.sides)
    corners = vtk_to_numpy(data.GetPolys().GetConnectivityArray()).reshape(-1, 3)
    np.testing.assert_array_equal(corners, surface.triangles)


def test_gltf_stands_upright_in_metres(surface, tmp_path) -> None:
    import trimesh

    (path,) = write_surface(tmp_path, "patient", surface, "gltf")
    scene = trimesh.load(path)
    assert isinstance(scene, trimesh.Scene)
    assert set(scene.geometry) == {"lumen", "wall", "lump"}
    low, high = scene.bounds
    mm = surface.vertices
    # right -> -x, superior -> y, anterior -> z
    np.testing.assert_allclose(
        low, [-mm[:, 0].max() / 1e3, mm[:, 2].min() / 1e3, mm[:, 1].min() / 1e3], atol=1e-6
    )
    np.testing.assert_allclose(
        high, [-mm[:, 0].min() / 1e3, mm[:, 2].max() / 1e3, mm[:, 1].max() / 1e3], atol=1e-6
    )
    lumen = scene.geometry["lumen"]
    assert isinstance(lumen, trimesh.Trimesh)
    assert lumen.is_watertight


def test_vtu(tetrahedra, surface, tmp_path) -> None:
    (path,) = write_volume(tmp_path, "patient", tetrahedra, surface, "vtu")
    data = read(path, vtk.vtkXMLUnstructuredGridReader())
    np.testing.assert_array_equal(points(data), tetrahedra.vertices)
    np.testing.assert_array_equal(arrays(data.GetCellData())["material"], tetrahedra.material)
    quality = vtk.vtkCellSizeFilter()
    quality.SetInputData(data)
    quality.Update()
    volume = arrays(quality.GetOutput().GetCellData())["Volume"]
    np.testing.assert_allclose(volume, tetrahedra.volumes_mm3(), rtol=1e-6)


def test_vtu_by_meshio(tetrahedra, surface, tmp_path) -> None:
    """As the example of a finite-element run reads it; a field of text would make meshio refuse the file."""
    import meshio

    (path,) = write_volume(tmp_path, "patient", tetrahedra, surface, "vtu")
    mesh = meshio.read(path)
    np.testing.assert_array_equal(mesh.points, tetrahedra.vertices)
    np.testing.assert_array_equal(mesh.cells_dict["tetra"], tetrahedra.tetrahedra)
    np.testing.assert_array_equal(np.concatenate(mesh.cell_data["material"]), tetrahedra.material)


@pytest.mark.parametrize("kind", ["xdmf", "inp", "msh"])
def test_meshio_files(kind, tetrahedra, surface, tmp_path) -> None:
    import meshio

    path, *_ = paths = write_volume(tmp_path, "patient", tetrahedra, surface, kind)
    assert sorted(paths) == sorted(tmp_path.iterdir())
    mesh = meshio.read(path)
    np.testing.assert_allclose(mesh.points, tetrahedra.vertices, rtol=1e-9)
    np.testing.assert_array_equal(mesh.cells_dict["tetra"], tetrahedra.tetrahedra)
    if kind == "inp":
        for name in tetrahedra.present():
            own = np.flatnonzero(tetrahedra.material == tetrahedra.table.id_of(name))
            np.testing.assert_array_equal(np.concatenate([np.asarray(s) for s in mesh.cell_sets[name]]), own)
    else:
        key = "material" if kind == "xdmf" else "gmsh:physical"
        np.testing.assert_array_equal(np.concatenate(mesh.cell_data[key]), tetrahedra.material)
    if kind == "msh":
        assert {k: v.tolist() for k, v in mesh.field_data.items()} == {
            "lumen": [1, 3],
            "wall": [2, 3],
            "lump": [5, 3],
        }


def test_xdmf_in_vtk(tetrahedra, surface, tmp_path) -> None:
    path, h5 = write_volume(tmp_path, "patient", tetrahedra, surface, "xdmf")
    assert h5.suffix == ".h5"
    reader = vtk.vtkXdmfReader()
    reader.SetFileName(str(path))
    reader.UpdateInformation()
    reader.Update()
    data = reader.GetOutputDataObject(0)
    while isinstance(data, vtk.vtkMultiBlockDataSet):
        data = data.GetBlock(0)
    assert isinstance(data, vtk.vtkUnstructuredGrid)
    np.testing.assert_allclose(points(data), tetrahedra.vertices, rtol=1e-6)
    corners = vtk_to_numpy(data.GetCells().GetConnectivityArray()).reshape(-1, 4)
    np.testing.assert_array_equal(corners, tetrahedra.tetrahedra)
    np.testing.assert_array_equal(arrays(data.GetCellData())["material"], tetrahedra.material)


def numbers(lines: list[str], split: str | None) -> np.ndarray:
    return np.array([[float(x) for x in line.split(split) if x.strip()] for line in lines])


def test_abaqus_as_its_manual_has_it(tetrahedra, surface, tmp_path) -> None:
    """Keyword lines begin with one star, data lines are numbers between commas, and ids count from 1."""
    (path,) = write_volume(tmp_path, "patient", tetrahedra, surface, "inp")
    blocks: dict[str, list[str]] = {}
    key = ""
    for line in path.read_text().splitlines():
        if line.startswith("*") and not line.startswith("**"):
            key = line.upper().replace(" ", "")
            blocks[key] = []
        elif line.strip() and not line.startswith("**"):
            blocks[key].append(line)
    nodes = numbers(blocks["*NODE"], ",")
    np.testing.assert_array_equal(nodes[:, 0], np.arange(1, len(tetrahedra.vertices) + 1))
    np.testing.assert_allclose(nodes[:, 1:], tetrahedra.vertices, rtol=1e-9)
    (cells,) = (numbers(lines, ",") for key, lines in blocks.items() if key.startswith("*ELEMENT,TYPE=C3D4"))
    np.testing.assert_array_equal(cells[:, 1:] - 1, tetrahedra.tetrahedra)
    for name in tetrahedra.present():
        own = np.concatenate([numbers([x], ",")[0] for x in blocks[f"*ELSET,ELSET={name.upper()}"]])
        id = tetrahedra.table.id_of(name)
        np.testing.assert_array_equal(own, cells[tetrahedra.material == id, 0])


def test_msh_as_its_manual_has_it(tetrahedra, surface, tmp_path) -> None:
    """Gmsh 2.2: sections, each with its count; an element is number, type 4, tags, corners."""
    (path,) = write_volume(tmp_path, "patient", tetrahedra, surface, "msh")
    lines = path.read_text().splitlines()

    def section(name: str) -> list[str]:
        return lines[lines.index(f"${name}") + 1 : lines.index(f"$End{name}")]

    assert section("MeshFormat")[0].split()[:2] == ["2.2", "0"]
    assert section("PhysicalNames")[1:] == ['3 1 "lumen"', '3 2 "wall"', '3 5 "lump"']
    count, *nodes = section("Nodes")
    assert int(count) == len(nodes)
    np.testing.assert_allclose(numbers(nodes, None)[:, 1:], tetrahedra.vertices, rtol=1e-9)
    count, *rows = section("Elements")
    assert int(count) == len(rows)
    cells = numbers(rows, None).astype(int)
    assert set(map(tuple, cells[:, 1:3])) == {(4, 2)}  # tetrahedra with two tags
    np.testing.assert_array_equal(cells[:, 3], tetrahedra.material)
    np.testing.assert_array_equal(cells[:, -4:] - 1, tetrahedra.tetrahedra)


def test_opencarp_counts_micrometres(tetrahedra, surface, tmp_path) -> None:
    pts, elem, lon = write_volume(tmp_path, "patient", tetrahedra, surface, "opencarp")
    count, *lines = pts.read_text().splitlines()
    assert int(count) == len(lines) == len(tetrahedra.vertices)
    np.testing.assert_allclose(
        np.array([x.split() for x in lines], float), 1000 * tetrahedra.vertices, atol=1e-5
    )
    count, *lines = elem.read_text().splitlines()
    assert int(count) == len(lines)
    rows = np.array([x.split()[1:] for x in lines], int)
    assert {x.split()[0] for x in lines} == {"Tt"}
    np.testing.assert_array_equal(rows, np.column_stack([tetrahedra.tetrahedra, tetrahedra.material]))
    kind, *lines = lon.read_text().splitlines()
    assert (kind, len(lines), lines[0]) == ("1", len(tetrahedra.tetrahedra), "1.000000 0.000000 0.000000")


def test_febio_has_a_domain_per_tissue_and_closed_surfaces(tetrahedra, surface, tmp_path) -> None:
    (path,) = write_volume(tmp_path, "patient", tetrahedra, surface, "febio")
    root = ElementTree.parse(path).getroot()
    assert root.get("version") == "4.0"
    nodes = np.array([n.text.split(",") for n in root.findall("Mesh/Nodes/node")], float)  # type: ignore[union-attr]
    np.testing.assert_allclose(nodes, tetrahedra.vertices, rtol=1e-7)
    domains = {d.get("name"): d.get("mat") for d in root.findall("MeshDomains/SolidDomain")}
    materials = [m.get("name") for m in root.findall("Material/material")]
    assert list(domains) == list(domains.values()) == materials == list(tetrahedra.present())
    ids = [int(e.get("id")) for e in root.findall("Mesh/Elements/elem")]  # type: ignore[arg-type]
    assert ids == list(range(1, len(tetrahedra.tetrahedra) + 1))
    sheets = {
        s.get("name"): np.array([t.text.split(",") for t in s], int) - 1  # type: ignore[union-attr]
        for s in root.findall("Mesh/Surface")
    }
    assert set(sheets) == {"wall_lumen", "lumen_outside", "wall_outside", "lump_outside", "lump_wall"}
    lumen = np.concatenate([sheets["lumen_outside"], sheets["wall_lumen"][:, ::-1]])
    assert topology(nodes, lumen).betti == (1, 0, 0)


def test_simvascular_has_a_wall_and_the_cuts(tetrahedra, surface, tmp_path) -> None:
    vessel = tetrahedra.of("lumen")
    (folder,) = write_volume(tmp_path, "patient", vessel, surface, "simvascular")
    assert sorted(p.name for p in (folder / "mesh-surfaces").iterdir()) == [
        "cap_1.vtp",
        "cap_2.vtp",
        "wall.vtp",
    ]
    volume = read(folder / "mesh-complete.mesh.vtu", vtk.vtkXMLUnstructuredGridReader())
    node = arrays(volume.GetPointData())["GlobalNodeID"]
    np.testing.assert_array_equal(node, np.arange(1, len(vessel.vertices) + 1))
    outside = read(folder / "mesh-complete.exterior.vtp", vtk.vtkXMLPolyDataReader())
    corners = vtk_to_numpy(outside.GetPolys().GetConnectivityArray()).reshape(-1, 3)
    assert topology(points(outside), corners.astype(np.int64)).betti == (1, 0, 0)
    cells = arrays(outside.GetCellData())
    assert sorted(np.unique(cells["ModelFaceID"])) == [1, 2, 3]
    # A node of a face has the number, and the place, of the volume's node.
    ids = arrays(outside.GetPointData())["GlobalNodeID"]
    np.testing.assert_array_equal(points(outside), points(volume)[ids - 1])
    tets = vessel.tetrahedra[cells["GlobalElementID"] - 1] + 1
    assert all(set(ids[face]) <= set(tet) for face, tet in zip(corners, tets, strict=True))
    z = [
        points(read(folder / "mesh-surfaces" / f"cap_{n}.vtp", vtk.vtkXMLPolyDataReader()))[:, 2]
        for n in (1, 2)
    ]
    assert np.ptp(z[0]) < 0.6
    assert abs(z[0].mean() - z[1].mean()) == pytest.approx(16, abs=0.5)


def test_centreline_of_the_lumen(patient, surface, tmp_path) -> None:
    (line,) = centrelines(patient, surface, ("lumen",))
    axis = patient.affine[:3, :3] @ [4.6, 5.3, 0] + patient.affine[:3, 3]
    assert np.abs(line.points_mm[:, :2] - axis[:2]).max() < 0.7
    assert line.points_mm[0, 2] > line.points_mm[-1, 2]
    # 4.6 mm less how far the line is off the axis; the cuts, 3 mm away, do not count.
    assert 3.8 < line.radii_mm.min() < line.radii_mm.max() < 4.8
    write_centrelines(tmp_path / "lines.vtp", (line,), {"lumen": 1})
    data = read(tmp_path / "lines.vtp", vtk.vtkXMLPolyDataReader())
    assert data.GetNumberOfLines() == 1
    np.testing.assert_array_equal(points(data), line.points_mm)
    radii = arrays(data.GetPointData())["MaximumInscribedSphereRadius"]
    np.testing.assert_array_equal(radii, line.radii_mm)


def test_the_side_file_names_everything(surface) -> None:
    said = json.loads(json.dumps(materials(surface.table, surface.present())))
    assert (said["space"], said["unit"]) == ("RAS", "mm")
    assert [(x["id"], x["name"]) for x in said["materials"]] == [(1, "lumen"), (2, "wall"), (5, "lump")]


def test_all_kinds_are_covered() -> None:
    assert set(SURFACES) == {"stl", "ply", "vtp", "gltf"}
    assert set(VOLUMES) == {"vtu", "xdmf", "inp", "msh", "opencarp", "febio", "simvascular"}
