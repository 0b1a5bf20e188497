"""Derive the table of discrete gradients of lower stars, and write it as a C++ header.

A voxel's lower star holds the cells of the cubical complex whose latest vertex is that voxel: the voxel
itself, up to 6 edges, 12 squares and 8 cubes.  Leaving the voxel out of each, its lower link is a
subcomplex of the boundary of the octahedron: edges, squares and cubes of the star are its vertices, edges
and triangles. There are only 15,935 such subcomplexes, so each gets its gradient here, once, from the
definition:

* a triangle with a free side is paired with that side until none is left (the whole sphere gives up one
  triangle first: a critical cube);
* of the graph that remains, each component gets a spanning tree rooted at its first vertex; each other vertex
  is paired with the tree edge towards the root, edges off the tree are critical squares;
* the first component's root is paired with the voxel, every other root is a critical edge.

The number of critical cells is thus the reduced Betti numbers of the link: the gradient is perfect.

The build runs this script (``python lower_star_table.py OUT``), so it uses the standard library alone.
"""

import sys
from collections.abc import Iterator
from itertools import combinations, product
from pathlib import Path
from typing import NamedTuple

# The octahedron. A vertex is a direction, numbered 2 * axis + (1 if it points up the axis), so that the
# opposite of d is d ^ 1; no edge joins opposite vertices.
VERTICES = tuple(range(6))
EDGES = tuple(pair for pair in combinations(VERTICES, 2) if pair[0] ^ 1 != pair[1])
TRIANGLES = tuple(product((0, 1), (2, 3), (4, 5)))
EDGE_NUMBER = {pair: number for number, pair in enumerate(EDGES)}
SIDES = tuple(tuple(EDGE_NUMBER[side] for side in combinations(triangle, 2)) for triangle in TRIANGLES)

# Values of a four-bit slot that are not the number of an edge of the octahedron.
CRITICAL, TO_VOXEL, ABSENT = 12, 13, 15
NO_EDGE = 6

# The roots are tried in this order. On a plateau the earlier neighbours are those of lower index; going back
# along the last axis first makes the paths of the gradient straight lines through contiguous memory.
ROOT_ORDER = (4, 5, 2, 3, 0, 1)


class Link(NamedTuple):
    """A subcomplex of the octahedron's boundary: bit masks over VERTICES, EDGES and TRIANGLES."""

    vertices: int
    edges: int
    triangles: int


class Gradient(NamedTuple):
    """The gradient of one lower star, in the names of its link.

    ``edge_of_vertex[d]``: the link edge paired with vertex d, or CRITICAL, TO_VOXEL, ABSENT.
    ``edge_of_triangle[t]``: the link edge paired with triangle t, or CRITICAL, ABSENT.
    ``voxel_vertex``: the vertex paired with the voxel itself, NO_EDGE if the voxel is critical.
    ``critical_edges``: mask of critical link edges (critical squares of the star).
    """

    voxel_vertex: int
    edge_of_vertex: tuple[int, ...]
    edge_of_triangle: tuple[int, ...]
    critical_edges: int


def members(mask: int, count: int) -> list[int]:
    return [i for i in range(count) if mask >> i & 1]


def subsets(items: list[int]) -> Iterator[int]:
    """All masks of subsets of the bit numbers given."""
    for choice in range(1 << len(items)):
        yield sum(1 << item for i, item in enumerate(items) if choice >> i & 1)


def links() -> Iterator[tuple[int, int, list[int]]]:
    """Each closed (vertices, edges) with the triangles that may be filled in: those with all three sides."""
    for vertices in range(1 << len(VERTICES)):
        possible = [n for n, (a, b) in enumerate(EDGES) if vertices >> a & 1 and vertices >> b & 1]
        for edges in subsets(possible):
            fillable = [t for t, sides in enumerate(SIDES) if all(edges >> side & 1 for side in sides)]
            yield vertices, edges, fillable


def gradient(link: Link) -> Gradient:
    """A perfect discrete gradient of the lower star with this link (see the top of the file)."""
    edge_of_triangle = [ABSENT] * len(TRIANGLES)
    triangles = set(members(link.triangles, len(TRIANGLES)))
    graph = set(members(link.edges, len(EDGES)))
    if len(triangles) == len(TRIANGLES):
        triangles.remove(0)
        edge_of_triangle[0] = CRITICAL
    while triangles:
        triangle, side = _free_side(triangles)
        edge_of_triangle[triangle] = side
        triangles.remove(triangle)
        graph.remove(side)

    edge_of_vertex = [ABSENT] * len(VERTICES)
    voxel_vertex = NO_EDGE
    for root in ROOT_ORDER:
        if not link.vertices >> root & 1 or edge_of_vertex[root] != ABSENT:
            continue
        edge_of_vertex[root] = CRITICAL if voxel_vertex != NO_EDGE else TO_VOXEL
        voxel_vertex = root if voxel_vertex == NO_EDGE else voxel_vertex
        reached = [root]
        for near in reached:
            for far in ROOT_ORDER:
                edge = EDGE_NUMBER.get((min(near, far), max(near, far)))
                if edge in graph and edge_of_vertex[far] == ABSENT:
                    edge_of_vertex[far] = edge
                    reached.append(far)
    critical = sum(1 << edge for edge in graph - set(edge_of_vertex))
    return Gradient(voxel_vertex, tuple(edge_of_vertex), tuple(edge_of_triangle), critical)


def _free_side(triangles: set[int]) -> tuple[int, int]:
    """A side that only one of the triangles has; part of a sphere's triangles always leaves one."""
    for triangle in sorted(triangles):
        for side in SIDES[triangle]:
            if sum(side in SIDES[other] for other in triangles) == 1:
                return triangle, side
    raise AssertionError("a proper subset of the octahedron's triangles has a boundary")


def place_rows(rows: list[tuple[int, list[int]]]) -> dict[int, int]:
    """Row displacement: offsets for (key, fillable triangles) such that offset + triangle mask is unique.

    Long rows first, each at the first offset where it overlaps nothing; the rows then tile without a gap.
    """
    taken = 0
    first_try: dict[tuple[int, ...], int] = {}
    offsets = {}
    for key, fillable in sorted(rows, key=lambda row: -len(row[1])):
        pattern = sum(1 << mask for mask in subsets(fillable))
        offset = first_try.get(tuple(fillable), 0)
        while taken >> offset & pattern:
            offset += 1
        first_try[tuple(fillable)] = offset + 1
        taken |= pattern << offset
        offsets[key] = offset
    return offsets


def star_key(vertices: int, edges: int) -> int:
    return vertices | edges << len(VERTICES)


def build() -> tuple[dict[int, int], list[Gradient | None]]:
    """(offset of each star key, gradients): the gradient of a link is at offset[key] + triangle mask."""
    found = list(links())
    offsets = place_rows([(star_key(vertices, edges), fillable) for vertices, edges, fillable in found])
    table: dict[int, Gradient] = {}
    for vertices, edges, fillable in found:
        for triangles in subsets(fillable):
            slot = offsets[star_key(vertices, edges)] + triangles
            assert slot not in table
            table[slot] = gradient(Link(vertices, edges, triangles))
    return offsets, [table.get(slot) for slot in range(max(table) + 1)]


def nibbles(values: tuple[int, ...]) -> int:
    return sum(value << 4 * i for i, value in enumerate(values))


def header(offsets: dict[int, int], table: list[Gradient | None]) -> str:
    keys = [f"{{{key},{offset}}}" for key, offset in sorted(offsets.items())]
    squares = [f"{{{a},{b}}}" for a, b in EDGES]
    cubes = [f"{{{a},{b},{c}}}" for a, b, c in TRIANGLES]
    rows = []
    for entry in table:
        if entry is None:
            rows.append("{0,0,0,0,0}")
            continue
        critical_vertices = sum(1 << d for d, e in enumerate(entry.edge_of_vertex) if e == CRITICAL)
        rows.append(
            f"{{{nibbles(entry.edge_of_vertex):#x},{nibbles(entry.edge_of_triangle):#x},{entry.critical_edges:#x},"
            f"{critical_vertices:#x},{entry.voxel_vertex}}}"
        )
    return "\n".join(
        [
            "// Made by tools/lower_star_table.py at build time; cpp/lower_star.hpp describes the layout.",
            f"constexpr int kStarCount = {len(table)};",
            f"constexpr int kSquareSides[{len(squares)}][2] = {{",
            *_lines(squares),
            "};",
            f"constexpr int kCubeSides[{len(cubes)}][3] = {{",
            *_lines(cubes),
            "};",
            f"constexpr StarRow kStarRows[{len(keys)}] = {{",
            *_lines(keys),
            "};",
            f"constexpr LowerStar kLowerStars[{len(table)}] = {{",
            *_lines(rows),
            "};",
            "",
        ]
    )


def _lines(items: list[str], per_line: int = 8) -> Iterator[str]:
    for i in range(0, len(items), per_line):
        yield ",".join(items[i : i + per_line]) + ","


if __name__ == "__main__":
    Path(sys.argv[1]).write_text(header(*build()))
