// Which vertices the mesh needs in one cell: the cube between the centres of eight voxels.
//
// The faces of the mesh are the voxels' own faces where two labels meet, with corners that may move within
// their cells. One vertex per cell is enough where every tissue of the cell is one piece there. Where a
// tissue touches itself across an edge or a corner only, it is not joined there (tissues are 6-connected,
// what surrounds them is 26-connected), so its two sides get vertices of their own and a gap opens between
// them: empty if the background is on both sides of it, else closed by a small face, the lens.
#pragma once

#include <array>
#include <cstdint>

namespace meshing {

using Label = std::uint8_t;

// An octant is a voxel of the cell, 4 dx + 2 dy + dz. A half-axis is 2 * axis + (1 if up the axis): the grid
// edge from the cell's centre to that of the next cell, with four octants around it.
constexpr int bit(int axis) { return 4 >> axis; }
constexpr int octant(int axis, int along, int first, int second) {
  return along * bit(axis) | first * bit((axis + 1) % 3) | second * bit((axis + 2) % 3);
}
// The four octants around a half-axis, counter-clockwise seen from up the axis.
constexpr int kTurn[4][2] = {{0, 0}, {1, 0}, {1, 1}, {0, 1}};
constexpr int around(int half_axis, int turn) {
  return octant(half_axis / 2, half_axis % 2, kTurn[turn][0], kTurn[turn][1]);
}
constexpr int turn_of(int axis, int oct) {
  const int first = (oct & bit((axis + 1) % 3)) != 0, second = (oct & bit((axis + 2) % 3)) != 0;
  return second ? 3 - first : first;
}

using Octants = std::array<Label, 8>;
using Quarter = std::array<Label, 4>;

inline Quarter quarter(const Octants& labels, int half_axis) {
  return {labels[around(half_axis, 0)], labels[around(half_axis, 1)], labels[around(half_axis, 2)],
          labels[around(half_axis, 3)]};
}

// What becomes of a grid edge with the four labels `around` it. `parity` says which of its diagonals is a
// tissue that touches itself there (0: turns 0 and 2, 1: turns 1 and 3, -1: none): the edge then has two
// copies, copy c beside turn parity + 2 c. `lens`: the gap between the copies is a face between two labels.
// `pinched`: the edge is not split although a tissue touches itself there: both diagonals are tissues, so
// that neither may be joined, or the edge is to be left whole.
struct EdgeSplit {
  int parity = -1;
  bool lens = false, pinched = false;
};

inline EdgeSplit split_of(const Quarter& l, bool whole) {
  EdgeSplit split;
  const bool even = l[0] == l[2] && l[0] != l[1] && l[0] != l[3];
  const bool odd = l[1] == l[3] && l[1] != l[0] && l[1] != l[2];
  if (even && odd) {
    if (l[0] != 0 && l[1] != 0)
      split.pinched = true;
    else
      split.parity = l[0] == 0;
  } else if (even && l[0] != 0) {
    split.parity = 0, split.lens = true;
  } else if (odd && l[1] != 0) {
    split.parity = 1, split.lens = true;
  }
  if (whole && split.parity >= 0) split = {-1, false, true};
  return split;
}

// The vertices of one cell and which of them each half-axis leads to.
class Link {
 public:
  // `whole`: the half-axes that are not to be split, as bits.
  Link(const Octants& labels, int whole) : labels_(labels) {
    for (int h = 0; h < 6; ++h) split_[h] = split_of(quarter(labels, h), whole >> h & 1);
    find_regions();
    find_arcs();
    join_arcs();
    number_groups();
    part_regions();
  }

  int groups() const { return groups_; }
  // The vertex at the end of a half-axis' copy.
  int group(int half_axis, int copy) const { return group_[2 * half_axis + copy]; }
  // The copy of a half-axis that the face between two octants ends in.
  int copy(int half_axis, int first, int second) const {
    return copy_of(split_[half_axis], half_axis / 2, first, second);
  }
  static int copy_of(const EdgeSplit& split, int axis, int first, int second) {
    if (split.parity < 0) return 0;
    const int turn = turn_of(axis, first);
    return ((turn & 1) == split.parity ? turn : turn_of(axis, second)) >> 1;
  }
  // Where a vertex starts, in cells from the centre: a vertex that has the cell to itself in the middle, one
  // of several on the side of what it belongs to.
  std::array<float, 3> offset(int group) const { return offset_[group]; }

 private:
  static constexpr float kAside = 0.25f;

  struct Arc {  // a quarter of a face, or the end of a lens: from node to node, between two labels
    int from, to;
    Label sides[2];
    int octants[2];  // -1, -1 for a lens
  };

  // Regions: voxels of one label joined by faces within the cell.
  void find_regions() {
    region_.fill(-1);
    for (int o = 0; o < 8; ++o) {
      if (region_[o] >= 0) continue;
      std::array<int, 8> stack{o};
      int left = 1;
      region_[o] = regions_;
      while (left > 0) {
        const int here = stack[--left];
        for (int axis = 0; axis < 3; ++axis) {
          const int next = here ^ bit(axis);
          if (region_[next] < 0 && labels_[next] == labels_[o])
            region_[next] = regions_, stack[left++] = next;
        }
      }
      ++regions_;
    }
  }

  void find_arcs() {
    for (int axis = 0; axis < 3; ++axis)
      for (int turn = 0; turn < 4; ++turn) {
        const int first = kTurn[turn][0], second = kTurn[turn][1];
        const int low = octant(axis, 0, first, second), high = octant(axis, 1, first, second);
        if (labels_[low] == labels_[high]) continue;
        const int from = 2 * ((axis + 1) % 3) + first, to = 2 * ((axis + 2) % 3) + second;
        arcs_[arc_count_++] = {2 * from + copy(from, low, high),
                               2 * to + copy(to, low, high),
                               {labels_[low], labels_[high]},
                               {low, high}};
      }
    for (int h = 0; h < 6; ++h)
      if (split_[h].lens) {
        const Quarter l = quarter(labels_, h);
        const int other = 1 - split_[h].parity;
        arcs_[arc_count_++] = {2 * h, 2 * h + 1, {l[other], l[other + 2]}, {-1, -1}};
      }
  }

  int root(int node) const {
    while (parent_[node] != node) node = parent_[node];
    return node;
  }

  // Nodes that arcs connect share a vertex. So do the parts of the link around a tissue's region: were they
  // apart, the tissue would be filled in between them, where it has a tunnel.
  void join_arcs() {
    for (int n = 0; n < 12; ++n) parent_[n] = n, used_[n] = false;
    std::array<int, 8> seen;
    seen.fill(-1);
    for (int i = 0; i < arc_count_; ++i) {
      const Arc& arc = arcs_[i];
      used_[arc.from] = used_[arc.to] = true;
      parent_[root(arc.from)] = root(arc.to);
      for (const int o : arc.octants) {
        if (o < 0 || labels_[o] == 0) continue;
        int& first = seen[region_[o]];
        if (first < 0) first = arc.from;
        parent_[root(first)] = root(arc.from);
      }
    }
  }

  void number_groups() {
    group_.fill(-1);
    std::array<int, 12> number;
    number.fill(-1);
    for (int n = 0; n < 12; ++n) {
      if (!used_[n]) continue;
      int& own = number[root(n)];
      if (own < 0) own = groups_++;
      group_[n] = own;
    }
    for (auto& o : offset_) o = {0, 0, 0};
    if (groups_ > 1)
      for (int g = 0; g < groups_; ++g) offset_[g] = towards_tissues(g);
  }

  std::array<float, 3> towards_tissues(int group) const {
    int chosen = 0;
    for (int i = 0; i < arc_count_; ++i)
      if (group_[arcs_[i].from] == group)
        for (const int o : arcs_[i].octants)
          if (o >= 0 && labels_[o] != 0)
            for (int p = 0; p < 8; ++p)
              if (region_[p] == region_[o]) chosen |= 1 << p;
    return towards(chosen);
  }

  static std::array<float, 3> towards(int chosen) {
    std::array<float, 3> sum{};
    int count = 0;
    for (int o = 0; o < 8; ++o)
      if (chosen >> o & 1) {
        ++count;
        for (int axis = 0; axis < 3; ++axis) sum[axis] += o & bit(axis) ? 1.f : -1.f;
      }
    for (float& s : sum) s *= kAside / static_cast<float>(count > 0 ? count : 1);
    return sum;
  }

  // A tissue with several regions at one vertex gets a vertex for each, all but the largest taken out of the
  // shared one. The faces that ran through the vertex are stretched along the edge between the two, which is
  // allowed if no other tissue then meets itself at that edge.
  void part_regions() {
    for (int r = 0; r < regions_; ++r) {
      int size = 0, label = 0;
      for (int o = 0; o < 8; ++o)
        if (region_[o] == r) ++size, label = labels_[o];
      if (label != 0 && !is_largest(r, size, label) && !pinned(label)) part(r, label);
    }
  }

  bool is_largest(int region, int size, int label) const {
    std::array<int, 8> sizes{};
    for (int o = 0; o < 8; ++o)
      if (labels_[o] == label) ++sizes[region_[o]];
    for (int r = 0; r < regions_; ++r)
      if (r != region && (sizes[r] > size || (sizes[r] == size && r < region))) return false;
    return true;
  }

  bool pinned(int label) const {
    for (int h = 0; h < 6; ++h)
      if (split_[h].pinched && (labels_[around(h, 0)] == label || labels_[around(h, 1)] == label))
        return true;
    return false;
  }

  void part(int region, int label) {
    int nodes = 0, chosen = 0, group = -1;
    for (int o = 0; o < 8; ++o) chosen |= (region_[o] == region) << o;
    for (int i = 0; i < arc_count_; ++i) {
      const Arc& arc = arcs_[i];
      if (!touches(arc, chosen)) continue;
      nodes |= 1 << arc.from | 1 << arc.to;
      if (group < 0) group = group_[arc.from];
      if (group_[arc.from] != group || group_[arc.to] != group) return;
    }
    const std::array<int, 12> before = group_;
    for (int n = 0; n < 12; ++n)
      if (nodes >> n & 1) group_[n] = groups_;
    if (!may_part(label)) {
      group_ = before;
      return;
    }
    offset_[groups_++] = towards(chosen);
    const std::array<float, 3> away = towards(chosen);
    for (int axis = 0; axis < 3; ++axis) {
      offset_[group][axis] -= away[axis];
      if (offset_[group][axis] > kAside) offset_[group][axis] = kAside;
      if (offset_[group][axis] < -kAside) offset_[group][axis] = -kAside;
    }
  }

  // Whether the newest group is joined to others by arcs, none of them beside the label it is parted for, and
  // every pair of vertices has an edge between them at which each tissue has two faces or none.
  bool may_part(int label) const {
    bool joined = false;
    for (int g = 0; g <= groups_; ++g)
      for (int h = 0; h < g; ++h) {
        std::array<int, 256> faces{};
        for (int i = 0; i < arc_count_; ++i) {
          const Arc& arc = arcs_[i];
          const int from = group_[arc.from], to = group_[arc.to];
          if ((from == g && to == h) || (from == h && to == g)) ++faces[arc.sides[0]], ++faces[arc.sides[1]];
        }
        if (g == groups_ && faces[label] > 0) return false;
        for (int other = 0; other < 256; ++other) {
          if (faces[other] % 2 != 0 || (other > 0 && faces[other] > 2)) return false;
          joined = joined || (g == groups_ && faces[other] > 0);
        }
      }
    return joined;
  }

  // Whether an arc is part of the border of the chosen octants; a lens is, if it ends at one of them.
  bool touches(const Arc& arc, int chosen) const {
    if (arc.octants[0] >= 0) return ((chosen >> arc.octants[0]) ^ (chosen >> arc.octants[1])) & 1;
    const int h = arc.from / 2, other = 1 - split_[h].parity;
    return (chosen >> around(h, other) & 1) != (chosen >> around(h, other + 2) & 1);
  }

  const Octants labels_;
  std::array<EdgeSplit, 6> split_;
  std::array<int, 8> region_;
  int regions_ = 0;
  std::array<Arc, 18> arcs_;
  int arc_count_ = 0;
  std::array<int, 12> parent_;
  std::array<bool, 12> used_;
  std::array<int, 12> group_;
  int groups_ = 0;
  std::array<std::array<float, 3>, 12> offset_;
};

}  // namespace meshing
