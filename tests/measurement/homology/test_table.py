"""The table of lower-star gradients: each is an acyclic matching with as few critical cells as can be."""

import sys
from graphlib import TopologicalSorter
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parents[3] / "tools"))

import lower_star_table as table


@pytest.fixture(scope="module")
def built():
    return table.build()


@pytest.fixture(scope="module")
def entries(built):
    """(link, gradient) of every subcomplex of the octahedron's boundary, where the kernel looks for it."""
    offsets, gradients = built
    return [
        (
            table.Link(vertices, edges, triangles),
            gradients[offsets[table.star_key(vertices, edges)] + triangles],
        )
        for vertices, edges, fillable in table.links()
        for triangles in table.subsets(fillable)
    ]


def test_every_slot_is_one_link(built, entries):
    _, gradients = built
    assert len(entries) == len(gradients) == 15_935
    assert len({link for link, _ in entries}) == len(entries)


def test_links_are_the_closed_subcomplexes():
    """Counted again from the definition: all masks of cells in which each cell's faces are present."""
    count = 0
    for vertices in range(64):
        allowed = [e for e, (a, b) in enumerate(table.EDGES) if vertices >> a & 1 and vertices >> b & 1]
        for edges in table.subsets(allowed):
            full = sum(all(edges >> side & 1 for side in sides) for sides in table.SIDES)
            count += 2**full
    assert count == 15_935


def cells_of(link: table.Link) -> set[tuple[str, int]]:
    """The star's cells: the voxel, and one more dimension than each cell of the link."""
    return (
        {("voxel", 0)}
        | {("edge", d) for d in table.members(link.vertices, 6)}
        | {("square", s) for s in table.members(link.edges, 12)}
        | {("cube", c) for c in table.members(link.triangles, 8)}
    )


def matching(gradient: table.Gradient) -> tuple[dict, set]:
    """(lower cell -> higher cell, critical cells)"""
    pairs, critical = {}, {("square", s) for s in table.members(gradient.critical_edges, 12)}
    if gradient.voxel_vertex == table.NO_EDGE:
        critical.add(("voxel", 0))
    else:
        pairs["voxel", 0] = ("edge", gradient.voxel_vertex)
    for direction, square in enumerate(gradient.edge_of_vertex):
        if square == table.CRITICAL:
            critical.add(("edge", direction))
        elif square == table.TO_VOXEL:
            assert gradient.voxel_vertex == direction
        elif square != table.ABSENT:
            pairs["edge", direction] = ("square", square)
    for cube, square in enumerate(gradient.edge_of_triangle):
        if square == table.CRITICAL:
            critical.add(("cube", cube))
        elif square != table.ABSENT:
            pairs["square", square] = ("cube", cube)
    return pairs, critical


def faces(cell: tuple[str, int]) -> set[tuple[str, int]]:
    """The faces of a cell of the star that are in the star."""
    kind, number = cell
    if kind == "cube":
        return {("square", s) for s in table.SIDES[number]}
    if kind == "square":
        return {("edge", d) for d in table.EDGES[number]}
    return {("voxel", 0)} if kind == "edge" else set()


def test_each_is_a_matching_of_all_cells_with_their_faces(entries):
    for link, gradient in entries:
        pairs, critical = matching(gradient)
        named = [*pairs, *pairs.values(), *critical]
        assert len(named) == len(set(named))
        assert set(named) == cells_of(link)
        assert all(lower in faces(higher) for lower, higher in pairs.items())


def test_each_is_acyclic(entries):
    """No closed path lower -> its partner -> another face of the partner -> ..."""
    for _, gradient in entries:
        pairs, _ = matching(gradient)
        graph = {lower: {f for f in faces(higher) if f != lower} for lower, higher in pairs.items()}
        TopologicalSorter(graph).prepare()


def test_critical_cells_are_the_reduced_betti_numbers_of_the_link(entries):
    """Perfect: no gradient has fewer critical cells. Betti numbers by union-find and Euler's formula."""
    for link, gradient in entries:
        _, critical = matching(gradient)
        count = {
            kind: sum(cell[0] == kind for cell in critical) for kind in ("voxel", "edge", "square", "cube")
        }
        vertices, edges = table.members(link.vertices, 6), table.members(link.edges, 12)
        if not vertices:
            assert count == {"voxel": 1, "edge": 0, "square": 0, "cube": 0}
            continue
        root = {d: d for d in vertices}
        for a, b in (table.EDGES[e] for e in edges):
            old, new = root[a], root[b]
            root = {d: new if r == old else r for d, r in root.items()}
        b0, b2 = len(set(root.values())), int(link.triangles == 255)
        b1 = b0 + b2 - (len(vertices) - len(edges) + len(table.members(link.triangles, 8)))
        assert count == {"voxel": 0, "edge": b0 - 1, "square": b1, "cube": b2}


def test_header_holds_the_table(built, tmp_path):
    text = table.header(*built)
    assert "kStarCount = 15935" in text
    assert text.count("\n") < 4000
