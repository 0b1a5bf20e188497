// The interfaces between the labels of a volume as polygons around the voxels' faces, and the vertices that
// they share, each with the box that it may move in.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <cstring>
#include <memory>
#include <stdexcept>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "mesh_link.hpp"

namespace meshing {

using Point = std::array<float, 3>;
using Vertex = std::int32_t;

// Half the edge of the box around a cell's centre that its vertex stays in, in cells: less than 1/2, so that
// neighbouring vertices never meet and no face can be turned over.
constexpr float kReach = 0.45f;
// The same for one of several vertices of a cell.
constexpr float kNarrow = 0.2f;

// A face of a voxel where two labels meet. Its corners go around `axis` counter-clockwise seen from up the
// axis, from `below` (the label of the voxel before the face) to `above`.
struct Quad {
  std::array<Vertex, 4> corners;
  Label below, above;
  std::uint8_t axis;
  Point centre;  // of the voxels' face
};

// The same with more corners, in `ring[first .. first + count)`. A lens, which is at no face, has axis 3.
struct Polygon {
  std::int32_t first, count;
  Label below, above;
  std::uint8_t axis;
  Point centre;
};

// An edge of the mesh; `feature` if three or more labels, or two and the volume's rim, meet along it.
struct Edge {
  Vertex from, to;
  bool feature;
};

// Corner indices are in voxels of the volume, whose first voxel's centre is 0.
class Complex {
 public:
  std::vector<Point> start, low, high;  // of each vertex
  std::vector<Octants> labels;          // of the eight voxels around each vertex
  std::vector<std::int32_t> cell;       // that each vertex is in
  std::vector<std::uint8_t> special;    // whether it is not the only one in its cell, or on an edge
  std::vector<Quad> quads;
  std::vector<Polygon> polygons;
  std::vector<Vertex> ring;
  std::vector<Edge> edges;
  std::array<std::int64_t, 256> voxels{};  // of each label

  // Cells that are `pinned` get one vertex, and no edge of theirs is split.
  Complex(const Label* volume, std::array<std::int64_t, 3> shape, const std::vector<std::int32_t>& pinned)
      : shape_(shape), pinned_(pinned.begin(), pinned.end()) {
    double count = 1;
    for (const auto n : shape) count *= static_cast<double>(n + 2);
    if (count >= static_cast<double>(1u << 31))
      throw std::length_error("a volume may have 2^31 voxels at most");
    pad(volume);
    find_cells();
    make_vertices();
    make_edges();
    make_faces();
  }

 private:
  struct Cell {
    std::int32_t index;  // in the grid of cells, one more than the volume along each axis
    Octants labels;
  };

  void pad(const Label* volume) {
    const auto [nx, ny, nz] = shape_;
    padded_.assign(static_cast<std::size_t>((nx + 2) * (ny + 2) * (nz + 2)), 0);
    for (std::int64_t x = 0; x < nx; ++x)
      for (std::int64_t y = 0; y < ny; ++y) {
        const Label* row = volume + (x * ny + y) * nz;
        std::memcpy(padded_.data() + ((x + 1) * (ny + 2) + y + 1) * (nz + 2) + 1, row,
                    static_cast<std::size_t>(nz));
        std::array<std::int32_t, 256> seen{};
        for (std::int64_t z = 0; z < nz; ++z) ++seen[row[z]];
        for (int l = 0; l < 256; ++l) voxels[l] += seen[l];
      }
  }

  // Cells whose eight voxels are not all alike. Rows are compared byte by byte without a branch first.
  void find_cells() {
    const auto [nx, ny, nz] = shape_;
    const std::int64_t row = nz + 2, plane = (ny + 2) * row;
    std::vector<std::uint8_t> across(static_cast<std::size_t>(row + 8)), mixed(across.size());
    for (std::int64_t x = 0; x <= nx; ++x)
      for (std::int64_t y = 0; y <= ny; ++y) {
        const Label* a = padded_.data() + x * plane + y * row;
        const Label *b = a + row, *c = a + plane, *d = c + row;
        for (std::int64_t z = 0; z < row; ++z)
          across[z] = static_cast<std::uint8_t>((a[z] ^ b[z]) | (a[z] ^ c[z]) | (a[z] ^ d[z]));
        for (std::int64_t z = 0; z <= nz; ++z)
          mixed[z] = static_cast<std::uint8_t>(across[z] | across[z + 1] | (a[z] ^ a[z + 1]));
        for (std::int64_t z = 0; z <= nz; ++z) {
          if ((z & 7) == 0) {
            std::uint64_t eight;
            std::memcpy(&eight, mixed.data() + z, 8);
            if (eight == 0) {
              z += 7;
              continue;
            }
          }
          if (mixed[z] == 0) continue;
          const std::int32_t index = static_cast<std::int32_t>((x * (ny + 1) + y) * (nz + 1) + z);
          cells_.push_back({index, {a[z], a[z + 1], b[z], b[z + 1], c[z], c[z + 1], d[z], d[z + 1]}});
        }
        std::fill(mixed.begin() + nz + 1, mixed.end(), 0);
      }
  }

  // One vertex is enough where all regions of the cell are different labels, which also rules out splits.
  static bool is_simple(const Octants& l) {
    const int same = (l[0] == l[1]) + (l[2] == l[3]) + (l[4] == l[5]) + (l[6] == l[7]);
    if (same == 4 && l[0] == l[2] && l[4] == l[6]) return true;  // two halves
    Label first = l[0], second = 0;
    int mask = 0;
    bool two = false;
    for (int o = 0; o < 8; ++o) {
      if (l[o] == first) continue;
      if (!two) two = true, second = l[o];
      if (l[o] != second) return false;
      mask |= 1 << o;
    }
    static const auto whole = whole_masks();
    return whole[mask] && whole[255 ^ mask];
  }

  // Whether a set of octants is joined by faces, for all 256 sets.
  static std::array<bool, 256> whole_masks() {
    std::array<bool, 256> whole{};
    for (int mask = 1; mask < 256; ++mask) {
      int found = mask & -mask;
      for (int round = 0; round < 8; ++round)
        for (int o = 0; o < 8; ++o)
          if (found >> o & 1)
            for (int axis = 0; axis < 3; ++axis) found |= mask & 1 << (o ^ bit(axis));
      whole[mask] = found == mask;
    }
    return whole;
  }

  void make_vertices() {
    const auto [nx, ny, nz] = shape_;
    vertex_of_.reset(new Vertex[static_cast<std::size_t>((nx + 1) * (ny + 1) * (nz + 1))]);
    start.reserve(cells_.size()), low.reserve(cells_.size()), high.reserve(cells_.size());
    labels.reserve(cells_.size());
    for (const Cell& own : cells_) {
      if (is_simple(own.labels)) {
        vertex_of_[own.index] = add_vertex(own.index, own.labels, {0, 0, 0}, kReach);
        continue;
      }
      if (is_pinned(own.index)) {
        vertex_of_[own.index] = add_vertex(own.index, own.labels, {0, 0, 0}, kReach);
        continue;
      }
      int whole = 0;
      for (int h = 0; h < 6; ++h) whole |= is_pinned(own.index + (h % 2 ? 1 : -1) * step(h / 2)) << h;
      const Link link(own.labels, whole);
      if (link.groups() > 1) {
        vertex_of_[own.index] = -1 - static_cast<Vertex>(links_.size());
        first_vertex_.push_back(static_cast<Vertex>(start.size()));
        links_.push_back(link);
        for (int g = 0; g < link.groups(); ++g) add_vertex(own.index, own.labels, link.offset(g), kNarrow);
      } else {
        vertex_of_[own.index] = add_vertex(own.index, own.labels, {0, 0, 0}, kReach);
      }
    }
  }

  bool is_pinned(std::int32_t index) const { return !pinned_.empty() && pinned_.count(index) > 0; }

  Vertex add_vertex(std::int32_t index, const Octants& around, Point offset, float reach) {
    Point at, least, most;
    const auto place = place_of(index);
    for (int axis = 0; axis < 3; ++axis) {
      // A vertex on the volume's rim stays on it: what the volume cuts is cut flat.
      const bool rim = place[axis] == 0 || place[axis] == shape_[axis];
      const float centre = static_cast<float>(place[axis]) - 0.5f;
      at[axis] = rim ? centre : centre + offset[axis];
      const float room = rim ? 0.f : reach;
      least[axis] = at[axis] - room, most[axis] = at[axis] + room;
    }
    start.push_back(at), low.push_back(least), high.push_back(most), labels.push_back(around);
    cell.push_back(index), special.push_back(reach < kReach);
    return static_cast<Vertex>(start.size() - 1);
  }

  std::array<std::int64_t, 3> place_of(std::int32_t index) const {
    const auto [nx, ny, nz] = shape_;
    return {index / ((ny + 1) * (nz + 1)), index / (nz + 1) % (ny + 1), index % (nz + 1)};
  }

  std::int32_t step(int axis) const {
    const auto [nx, ny, nz] = shape_;
    return static_cast<std::int32_t>(axis == 0 ? (ny + 1) * (nz + 1) : axis == 1 ? nz + 1 : 1);
  }

  // The vertex at which a copy of a grid edge ends in a cell.
  Vertex vertex(std::int32_t index, int half_axis, int copy) const {
    const Vertex v = vertex_of_[index];
    if (v >= 0) return v;
    return first_vertex_[-1 - v] + links_[-1 - v].group(half_axis, copy);
  }

  static std::int64_t edge_key(std::int32_t index, int axis) {
    return 3 * static_cast<std::int64_t>(index) + axis;
  }

  void make_edges() {
    edges.reserve(2 * cells_.size());
    for (const Cell& own : cells_)
      for (int axis = 0; axis < 3; ++axis) {
        const Quarter l = quarter(own.labels, 2 * axis + 1);
        if (l[0] == l[1] && l[1] == l[2] && l[2] == l[3]) continue;
        const EdgeSplit split = split_of(l, is_pinned(own.index) || is_pinned(own.index + step(axis)));
        const bool feature = is_feature(own.index, axis, l);
        const std::int32_t next = own.index + step(axis);
        const int copies = split.parity < 0 ? 1 : 2;
        std::array<Vertex, 2> from, to, middle{-1, -1};
        for (int c = 0; c < copies; ++c)
          from[c] = vertex(own.index, 2 * axis + 1, c), to[c] = vertex(next, 2 * axis, c);
        if (copies == 2) {
          // Two edges between the same two vertices would be one: each then gets a vertex in the middle.
          if (from[0] == from[1] && to[0] == to[1]) {
            for (int c = 0; c < 2; ++c) middle[c] = add_middle(own.index, axis, l, split.parity + 2 * c);
            beside_middle_.resize(start.size());
            beside_middle_[from[0]] = beside_middle_[to[0]] = true;
          }
          splits_[edge_key(own.index, axis)] = {split, middle};
          if (split.lens) add_lens(l, split, from, middle, to);
        }
        for (int c = 0; c < copies; ++c) {
          const bool sharp = feature || split.lens;
          if (middle[c] < 0) {
            edges.push_back({from[c], to[c], sharp});
          } else {
            edges.push_back({from[c], middle[c], sharp});
            edges.push_back({middle[c], to[c], sharp});
          }
        }
      }
  }

  // Three labels, with what is outside the volume counted as one of its own.
  bool is_feature(std::int32_t index, int axis, const Quarter& l) const {
    if (distinct(std::array<int, 4>{l[0], l[1], l[2], l[3]}) >= 3) return true;
    const auto place = place_of(index);
    const int i = (axis + 1) % 3, j = (axis + 2) % 3;
    if (place[i] > 0 && place[j] > 0 && place[i] < shape_[i] && place[j] < shape_[j]) return false;
    std::array<int, 4> seen;
    for (int turn = 0; turn < 4; ++turn) {
      const std::int64_t u = place[i] + kTurn[turn][0], v = place[j] + kTurn[turn][1];
      seen[turn] = u == 0 || v == 0 || u > shape_[i] || v > shape_[j] ? 256 : l[turn];
    }
    return distinct(seen) >= 3;
  }

  static int distinct(const std::array<int, 4>& values) {
    int found = 0;
    for (int a = 0; a < 4; ++a) {
      bool fresh = true;
      for (int b = 0; b < a; ++b) fresh &= values[a] != values[b];
      found += fresh;
    }
    return found;
  }

  Vertex add_middle(std::int32_t index, int axis, const Quarter& l, int turn) {
    Octants both;
    for (int t = 0; t < 4; ++t) both[around(2 * axis, t)] = both[around(2 * axis + 1, t)] = l[t];
    Point offset{0, 0, 0};
    offset[(axis + 1) % 3] = kTurn[turn][0] ? 0.25f : -0.25f;
    offset[(axis + 2) % 3] = kTurn[turn][1] ? 0.25f : -0.25f;
    const Vertex v = add_vertex(index, both, offset, kNarrow);
    for (auto* p : {&start[v], &low[v], &high[v]}) (*p)[axis] += 0.5f;
    return v;
  }

  void add_lens(const Quarter& l, const EdgeSplit& split, const std::array<Vertex, 2>& from,
                const std::array<Vertex, 2>& middle, const std::array<Vertex, 2>& to) {
    const std::int32_t first = static_cast<std::int32_t>(ring.size());
    const auto push = [&](Vertex v) {
      if (v >= 0 && (static_cast<std::int32_t>(ring.size()) == first || ring.back() != v)) ring.push_back(v);
    };
    push(from[0]), push(middle[0]), push(to[0]), push(to[1]), push(middle[1]), push(from[1]);
    if (ring.back() == ring[first]) ring.pop_back();
    // From copy 0 to copy 1 the normal points to the turn that comes before copy 0's.
    const Label below = split.parity == 0 ? l[1] : l[2], above = split.parity == 0 ? l[3] : l[0];
    polygons.push_back({first, static_cast<std::int32_t>(ring.size()) - first, below, above, 3, {}});
  }

  // The face between two voxels is found by the lowest of its four cells.
  void make_faces() {
    quads.reserve(cells_.size());
    for (const Cell& own : cells_)
      for (int axis = 0; axis < 3; ++axis) {
        const int below = octant(axis, 0, 1, 1), above = octant(axis, 1, 1, 1);
        if (own.labels[below] == own.labels[above]) continue;
        add_face(own, axis, own.labels[below], own.labels[above]);
      }
  }

  void add_face(const Cell& own, int axis, Label below, Label above) {
    const int i = (axis + 1) % 3, j = (axis + 2) % 3;
    const std::int32_t si = step(i), sj = step(j);
    const std::array<std::int32_t, 4> at{own.index, own.index + si, own.index + si + sj, own.index + sj};
    const auto place = place_of(own.index);
    Point centre;
    for (int k = 0; k < 3; ++k) centre[k] = static_cast<float>(place[k]) - (k == axis ? 0.5f : 0.f);
    bool plain = true;
    for (const auto c : at) plain = plain && vertex_of_[c] >= 0 && !is_beside_middle(vertex_of_[c]);
    if (plain) {
      quads.push_back({{vertex_of_[at[0]], vertex_of_[at[1]], vertex_of_[at[2]], vertex_of_[at[3]]},
                       below,
                       above,
                       static_cast<std::uint8_t>(axis),
                       centre});
      return;
    }
    // Corner by corner: the half-axis by which the ring comes into the cell, that by which it leaves, and the
    // lower cell and axis of the edge that it leaves along.
    const int in[4] = {2 * j + 1, 2 * i, 2 * j, 2 * i + 1}, out[4] = {2 * i + 1, 2 * j + 1, 2 * i, 2 * j};
    const std::int32_t edge_cell[4] = {at[0], at[1], at[3], at[0]};
    const std::int32_t first = static_cast<std::int32_t>(ring.size());
    for (int n = 0; n < 4; ++n) {
      const int one = octant(axis, 0, 1 - kTurn[n][0], 1 - kTurn[n][1]), two = one | bit(axis);
      const Vertex v = vertex_of_[at[n]];
      if (v >= 0) {
        ring.push_back(v);
      } else {
        const Link& link = links_[-1 - v];
        const Vertex enter = vertex(at[n], in[n], link.copy(in[n], one, two));
        const Vertex leave = vertex(at[n], out[n], link.copy(out[n], one, two));
        ring.push_back(enter);
        if (leave != enter) {
          ring.push_back(leave);
          edges.push_back({enter, leave, true});
        }
      }
      const auto split = splits_.find(edge_key(edge_cell[n], out[n] / 2));
      if (split != splits_.end()) {
        const int copy = Link::copy_of(split->second.split, out[n] / 2, one, two);
        if (split->second.middle[copy] >= 0) ring.push_back(split->second.middle[copy]);
      }
    }
    const std::int32_t count = static_cast<std::int32_t>(ring.size()) - first;
    if (count == 4) {
      quads.push_back({{ring[first], ring[first + 1], ring[first + 2], ring[first + 3]},
                       below,
                       above,
                       static_cast<std::uint8_t>(axis),
                       centre});
      ring.resize(static_cast<std::size_t>(first));
      return;
    }
    polygons.push_back({first, count, below, above, static_cast<std::uint8_t>(axis), centre});
  }

  bool is_beside_middle(Vertex v) const {
    return static_cast<std::size_t>(v) < beside_middle_.size() && beside_middle_[v];
  }

  struct Split {
    EdgeSplit split;
    std::array<Vertex, 2> middle;
  };

  const std::array<std::int64_t, 3> shape_;
  const std::unordered_set<std::int32_t> pinned_;
  std::vector<Label> padded_;
  std::vector<Cell> cells_;
  std::unique_ptr<Vertex[]>
      vertex_of_;  // by cell; -1 - i where the cell has several vertices, those of link i
  std::vector<Link> links_;
  std::vector<Vertex> first_vertex_;  // of each link
  std::unordered_map<std::int64_t, Split> splits_;
  std::vector<bool> beside_middle_;  // vertices at an end of an edge with a vertex in the middle
};

}  // namespace meshing
