// Pairs of triangles of a mesh that have more in common than the corners and edges they share.
#pragma once

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>
#include <stdexcept>
#include <unordered_set>
#include <utility>
#include <vector>

namespace meshing {

// Points are rounded to a lattice so fine that nothing moves visibly and so coarse that the determinants
// below fit 64 bits: every answer is then exact for the rounded mesh, also for touching and coplanar
// triangles.
class Crossings {
  using Lattice = std::array<std::int64_t, 3>;

 public:
  // points: (count, 3) in C order.
  Crossings(const double* points, std::size_t count, const std::int32_t* triangles,
            std::size_t triangle_count)
      : triangles_(triangles), count_(triangle_count) {
    double extent = 0, sum = 0;
    for (std::size_t t = 0; t < count_; ++t)
      for (int axis = 0; axis < 3; ++axis) {
        double low = 1e300, high = -1e300;
        for (int n = 0; n < 3; ++n) {
          const double x = points[3 * static_cast<std::size_t>(triangles[3 * t + n]) + axis];
          low = std::min(low, x), high = std::max(high, x);
        }
        extent = std::max(extent, high - low), sum += high - low;
      }
    if (!(extent > 0)) return;
    // Two triangles whose boxes meet span twice the extent at most: 2^20 steps, 6 * 2^60 < 2^63.
    int exponent = 0;
    std::frexp(2 * extent, &exponent);
    exponent = 20 - exponent;
    lattice_.resize(count);
    for (std::size_t v = 0; v < count; ++v)
      for (int axis = 0; axis < 3; ++axis) {
        const double scaled = std::ldexp(points[3 * v + axis], exponent);
        if (!(std::abs(scaled) < 9e15)) throw std::out_of_range("points must be finite and not far from 0");
        lattice_[v][axis] = std::llround(scaled);
      }
    find_boxes();
    // Buckets are twice as wide as the mean triangle, but none of these shall fill too many of them.
    const double wide = std::max(2 * sum / static_cast<double>(3 * count_), extent / 16);
    step_ = std::max<std::int64_t>(1, std::llround(std::ldexp(wide, exponent)));
  }

  // Index pairs, the smaller first, in ascending order. With `suspects` only the pairs that have one.
  std::vector<std::pair<std::int32_t, std::int32_t>> find(
      const std::vector<std::uint8_t>* suspects = nullptr) const {
    std::vector<std::pair<std::int32_t, std::int32_t>> found;
    const std::vector<Entry> entries = sorted_entries(suspects);
    for (std::size_t begin = 0, end; begin < entries.size(); begin = end) {
      for (end = begin + 1; end < entries.size() && entries[end].cell == entries[begin].cell;) ++end;
      for (std::size_t i = begin; i < end; ++i)
        for (std::size_t j = i + 1; j < end; ++j) {
          const std::int32_t a = entries[i].triangle, b = entries[j].triangle;
          if (suspects != nullptr && !(*suspects)[a] && !(*suspects)[b]) continue;
          if (boxes_meet(a, b) && home_of(a, b) == entries[begin].cell && cross(a, b))
            found.emplace_back(std::min(a, b), std::max(a, b));
        }
    }
    std::sort(found.begin(), found.end());
    return found;
  }

 private:
  struct Box {
    Lattice low, high;
  };
  struct Entry {
    std::uint64_t cell;
    std::int32_t triangle;
  };

  void find_boxes() {
    boxes_.resize(count_);
    origin_ = {INT64_MAX, INT64_MAX, INT64_MAX};
    for (std::size_t t = 0; t < count_; ++t) {
      Box& box = boxes_[t];
      box.low = box.high = corner(t, 0);
      for (int n = 1; n < 3; ++n)
        for (int axis = 0; axis < 3; ++axis) {
          box.low[axis] = std::min(box.low[axis], corner(t, n)[axis]);
          box.high[axis] = std::max(box.high[axis], corner(t, n)[axis]);
        }
      for (int axis = 0; axis < 3; ++axis) origin_[axis] = std::min(origin_[axis], box.low[axis]);
    }
  }

  const Lattice& corner(std::size_t t, int n) const {
    return lattice_[static_cast<std::size_t>(triangles_[3 * t + n])];
  }

  std::uint64_t bucket(std::int64_t x, std::int64_t y, std::int64_t z) const {
    const auto at = [&](std::int64_t value, int axis) {
      return static_cast<std::uint64_t>((value - origin_[axis]) / step_) & ((1u << 21) - 1);
    };
    return at(x, 0) << 42 | at(y, 1) << 21 | at(z, 2);
  }

  // Each triangle in every bucket that its box meets, by bucket; with suspects, in theirs only.
  std::vector<Entry> sorted_entries(const std::vector<std::uint8_t>* suspects) const {
    std::unordered_set<std::uint64_t> wanted;
    if (suspects != nullptr)
      for (std::size_t t = 0; t < boxes_.size(); ++t)
        if ((*suspects)[t]) each_bucket(boxes_[t], [&](std::uint64_t cell) { wanted.insert(cell); });
    std::vector<std::uint8_t> hashes(1 << 16, suspects == nullptr);  // most buckets are ruled out by a byte
    for (const std::uint64_t cell : wanted) hashes[hash(cell)] = 1;
    std::vector<Entry> entries;
    for (std::size_t t = 0; t < boxes_.size(); ++t)
      each_bucket(boxes_[t], [&](std::uint64_t cell) {
        if (hashes[hash(cell)] && (suspects == nullptr || wanted.count(cell) > 0))
          entries.push_back({cell, static_cast<std::int32_t>(t)});
      });
    std::sort(entries.begin(), entries.end(), [](const Entry& a, const Entry& b) { return a.cell < b.cell; });
    return entries;
  }

  static std::size_t hash(std::uint64_t cell) { return cell * 0x9e3779b97f4a7c15u >> 48; }

  template <class Do>
  void each_bucket(const Box& box, Do act) const {
    Lattice first, last;
    for (int axis = 0; axis < 3; ++axis) {
      first[axis] = (box.low[axis] - origin_[axis]) / step_;
      last[axis] = (box.high[axis] - origin_[axis]) / step_;
    }
    for (std::int64_t x = first[0]; x <= last[0]; ++x)
      for (std::int64_t y = first[1]; y <= last[1]; ++y)
        for (std::int64_t z = first[2]; z <= last[2]; ++z)
          act(static_cast<std::uint64_t>(x) << 42 | static_cast<std::uint64_t>(y) << 21 |
              static_cast<std::uint64_t>(z));
  }

  bool boxes_meet(std::int32_t a, std::int32_t b) const {
    const Box &p = boxes_[a], &q = boxes_[b];
    for (int axis = 0; axis < 3; ++axis)
      if (p.low[axis] > q.high[axis] || q.low[axis] > p.high[axis]) return false;
    return true;
  }

  // The one bucket that looks at a pair: that of the lower corner of what their boxes share.
  std::uint64_t home_of(std::int32_t a, std::int32_t b) const {
    const Lattice &p = boxes_[a].low, &q = boxes_[b].low;
    return bucket(std::max(p[0], q[0]), std::max(p[1], q[1]), std::max(p[2], q[2]));
  }

  bool cross(std::int32_t a, std::int32_t b) const {
    const std::int32_t *p = triangles_ + 3 * a, *q = triangles_ + 3 * b;
    int shared = 0, at_p = 0, at_q = 0;  // the last shared corner
    int rest_p = 3, rest_q = 3;          // the sums of the indices of shared corners, taken off 0 + 1 + 2
    for (int i = 0; i < 3; ++i)
      for (int j = 0; j < 3; ++j)
        if (p[i] == q[j]) ++shared, at_p = i, at_q = j, rest_p -= i, rest_q -= j;
    if (shared == 3) return true;
    if (shared == 2) return folded(a, rest_p, b, rest_q);
    if (shared == 1) {
      return meets(corner(a, (at_p + 1) % 3), corner(a, (at_p + 2) % 3), b) ||
             meets(corner(b, (at_q + 1) % 3), corner(b, (at_q + 2) % 3), a) ||
             (coplanar(a, b) && wedge_overlap(a, at_p, b, at_q));
    }
    for (int n = 0; n < 3; ++n)
      if (meets(corner(a, n), corner(a, (n + 1) % 3), b) || meets(corner(b, n), corner(b, (n + 1) % 3), a))
        return true;
    return false;
  }

  // Six times the volume of a tetrahedron, exact.
  static std::int64_t volume(const Lattice& a, const Lattice& b, const Lattice& c, const Lattice& d) {
    Lattice u, v, w;
    for (int k = 0; k < 3; ++k) u[k] = b[k] - a[k], v[k] = c[k] - a[k], w[k] = d[k] - a[k];
    return u[0] * (v[1] * w[2] - v[2] * w[1]) + u[1] * (v[2] * w[0] - v[0] * w[2]) +
           u[2] * (v[0] * w[1] - v[1] * w[0]);
  }
  static int sign(std::int64_t x) { return (x > 0) - (x < 0); }

  bool coplanar(std::int32_t a, std::int32_t b) const {
    for (int n = 0; n < 3; ++n)
      if (volume(corner(a, 0), corner(a, 1), corner(a, 2), corner(b, n)) != 0) return false;
    return true;
  }

  // Twice the area of a, b, c seen along `axis`.
  static std::int64_t area(const Lattice& a, const Lattice& b, const Lattice& c, int axis) {
    const int i = (axis + 1) % 3, j = (axis + 2) % 3;
    return (b[i] - a[i]) * (c[j] - a[j]) - (b[j] - a[j]) * (c[i] - a[i]);
  }

  // The axis along which the triangle is seen largest.
  int broadside(std::int32_t t) const {
    int best = 0;
    std::int64_t most = -1;
    for (int axis = 0; axis < 3; ++axis) {
      const std::int64_t seen = std::abs(area(corner(t, 0), corner(t, 1), corner(t, 2), axis));
      if (seen > most) most = seen, best = axis;
    }
    return best;
  }

  // Triangles with a common edge overlap if they lie in one plane on the same side of it.
  bool folded(std::int32_t a, int apex_a, std::int32_t b, int apex_b) const {
    const Lattice &u = corner(a, (apex_a + 1) % 3), &v = corner(a, (apex_a + 2) % 3);
    if (volume(u, v, corner(a, apex_a), corner(b, apex_b)) != 0) return false;
    const int axis = broadside(a);
    return sign(area(u, v, corner(a, apex_a), axis)) == sign(area(u, v, corner(b, apex_b), axis));
  }

  // Coplanar triangles with one common corner, of which no edge opposite to it meets the other triangle:
  // they overlap if one's wedge lies in the other's.
  bool wedge_overlap(std::int32_t a, int at_a, std::int32_t b, int at_b) const {
    const int axis = broadside(a);
    const Lattice& v = corner(a, at_a);
    const auto inside = [&](std::int32_t t, int at, const Lattice& p) {
      const Lattice &x = corner(t, (at + 1) % 3), &y = corner(t, (at + 2) % 3);
      const int whole = sign(area(v, x, y, axis));
      return sign(area(v, x, p, axis)) == whole && sign(area(v, p, y, axis)) == whole;
    };
    for (int n = 1; n < 3; ++n)
      if (inside(a, at_a, corner(b, (at_b + n) % 3)) || inside(b, at_b, corner(a, (at_a + n) % 3)))
        return true;
    return false;
  }

  // Whether a closed segment meets a closed triangle.
  bool meets(const Lattice& p, const Lattice& q, std::int32_t t) const {
    const Lattice &a = corner(t, 0), &b = corner(t, 1), &c = corner(t, 2);
    const int at_p = sign(volume(a, b, c, p)), at_q = sign(volume(a, b, c, q));
    if (at_p == at_q) return at_p == 0 && meets_in_plane(p, q, t);
    const int x = sign(volume(p, q, a, b)), y = sign(volume(p, q, b, c)), z = sign(volume(p, q, c, a));
    return (x >= 0 && y >= 0 && z >= 0) || (x <= 0 && y <= 0 && z <= 0);
  }

  bool meets_in_plane(const Lattice& p, const Lattice& q, std::int32_t t) const {
    const int axis = broadside(t);
    const int whole = sign(area(corner(t, 0), corner(t, 1), corner(t, 2), axis));
    bool inside = true;
    for (int n = 0; n < 3; ++n) {
      const Lattice &a = corner(t, n), &b = corner(t, (n + 1) % 3);
      inside = inside && sign(area(a, b, p, axis)) * whole >= 0;
      if (segments_meet(p, q, a, b, axis)) return true;
    }
    return inside;
  }

  static bool segments_meet(const Lattice& p, const Lattice& q, const Lattice& a, const Lattice& b,
                            int axis) {
    const int x = sign(area(p, q, a, axis)), y = sign(area(p, q, b, axis));
    const int z = sign(area(a, b, p, axis)), w = sign(area(a, b, q, axis));
    if (x != y && z != w) return true;
    if (x != 0 || y != 0) return false;
    // All on one line: they meet if their extents do.
    for (const int k : {(axis + 1) % 3, (axis + 2) % 3})
      if (std::max(p[k], q[k]) < std::min(a[k], b[k]) || std::max(a[k], b[k]) < std::min(p[k], q[k]))
        return false;
    return true;
  }

  const std::int32_t* triangles_;
  std::size_t count_;
  std::vector<Lattice> lattice_;
  std::vector<Box> boxes_;
  Lattice origin_{};
  std::int64_t step_ = 1;
};

}  // namespace meshing
