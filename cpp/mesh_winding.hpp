// Which label points are in: winding numbers of all labels' surfaces at once.
#pragma once

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>
#include <vector>

#include "mesh_link.hpp"

namespace meshing {

// The winding number of a closed surface around a point is the number of times that a ray from the point
// leaves it, less the times that it enters. The ray goes up the last axis; triangles are found in columns
// of a grid across it. Which side of an edge the ray passes is decided from the edge's own two corners in
// their order, the same for both of its triangles, so that no ray slips between them.
class Winding {
 public:
  // points: (n, 3); triangles: (t, 3); sides: (t, 2), the labels that each triangle's normal points out of
  // and into.
  Winding(const double* points, std::size_t count, const std::int32_t* triangles, const Label* sides,
          std::size_t triangle_count)
      : points_(points), triangles_(triangles), sides_(sides) {
    for (int k = 0; k < 2; ++k) low_[k] = 1e300, high_[k] = -1e300;
    for (std::size_t v = 0; v < count; ++v)
      for (int k = 0; k < 2; ++k)
        low_[k] = std::min(low_[k], points[3 * v + k]), high_[k] = std::max(high_[k], points[3 * v + k]);
    const double area = std::max(high_[0] - low_[0], 1e-9) * std::max(high_[1] - low_[1], 1e-9);
    step_ = std::sqrt(area / static_cast<double>(std::max<std::size_t>(triangle_count, 1)));
    for (int k = 0; k < 2; ++k)
      shape_[k] = std::min<std::int64_t>(4096, static_cast<std::int64_t>((high_[k] - low_[k]) / step_) + 1);
    fill(triangle_count);
  }

  // The label around which the winding number is 1, 0 if there is none; -1 if any number is neither 0 nor 1,
  // or two labels have 1: the surfaces are not closed.
  int label_at(const double* p) const {
    std::array<int, 256> winding{};
    if (p[0] < low_[0] || p[0] > high_[0] || p[1] < low_[1] || p[1] > high_[1]) return 0;
    const std::size_t cell = static_cast<std::size_t>(place(p[0], 0) * shape_[1] + place(p[1], 1));
    for (std::int64_t i = first_[cell]; i < first_[cell + 1]; ++i) {
      const std::int32_t t = entries_[i];
      const int through = crossing(p, triangles_ + 3 * t);
      winding[sides_[2 * t]] += through, winding[sides_[2 * t + 1]] -= through;
    }
    int found = 0;
    for (int l = 1; l < 256; ++l) {
      if (winding[l] == 0) continue;
      if (winding[l] != 1 || found != 0) return -1;
      found = l;
    }
    return found;
  }

 private:
  std::int64_t place(double x, int k) const {
    return std::clamp<std::int64_t>(static_cast<std::int64_t>((x - low_[k]) / step_), 0, shape_[k] - 1);
  }

  void fill(std::size_t triangle_count) {
    first_.assign(static_cast<std::size_t>(shape_[0] * shape_[1]) + 1, 0);
    const auto each = [&](std::size_t t, auto act) {
      std::array<std::int64_t, 2> begin, end;
      for (int k = 0; k < 2; ++k) {
        double least = 1e300, most = -1e300;
        for (int n = 0; n < 3; ++n) {
          const double x = points_[3 * static_cast<std::size_t>(triangles_[3 * t + n]) + k];
          least = std::min(least, x), most = std::max(most, x);
        }
        begin[k] = place(least, k), end[k] = place(most, k);
      }
      for (std::int64_t x = begin[0]; x <= end[0]; ++x)
        for (std::int64_t y = begin[1]; y <= end[1]; ++y) act(static_cast<std::size_t>(x * shape_[1] + y));
    };
    for (std::size_t t = 0; t < triangle_count; ++t) each(t, [&](std::size_t cell) { ++first_[cell + 1]; });
    for (std::size_t c = 1; c < first_.size(); ++c) first_[c] += first_[c - 1];
    entries_.resize(static_cast<std::size_t>(first_.back()));
    std::vector<std::int64_t> next(first_.begin(), first_.end() - 1);
    for (std::size_t t = 0; t < triangle_count; ++t)
      each(t, [&](std::size_t cell) { entries_[next[cell]++] = static_cast<std::int32_t>(t); });
  }

  // 1 if the ray up from p leaves through the triangle, -1 if it enters, 0 if it passes by.
  int crossing(const double* p, const std::int32_t* t) const {
    bool left[3];
    for (int n = 0; n < 3; ++n) {
      const std::int32_t a = t[n], b = t[(n + 1) % 3];
      left[n] = a < b ? is_left(p, a, b) : !is_left(p, b, a);
    }
    if (left[0] != left[1] || left[1] != left[2]) return 0;
    const double *a = points_ + 3 * t[0], *b = points_ + 3 * t[1], *c = points_ + 3 * t[2];
    const double u[3] = {b[0] - a[0], b[1] - a[1], b[2] - a[2]},
                 v[3] = {c[0] - a[0], c[1] - a[1], c[2] - a[2]};
    const double nx = u[1] * v[2] - u[2] * v[1], ny = u[2] * v[0] - u[0] * v[2],
                 nz = u[0] * v[1] - u[1] * v[0];
    if (nz == 0) return 0;
    const double height = a[2] - (nx * (p[0] - a[0]) + ny * (p[1] - a[1])) / nz;
    if (height <= p[2]) return 0;
    return left[0] ? 1 : -1;
  }

  bool is_left(const double* p, std::int32_t from, std::int32_t to) const {
    const double *a = points_ + 3 * from, *b = points_ + 3 * to;
    return (b[0] - a[0]) * (p[1] - a[1]) - (b[1] - a[1]) * (p[0] - a[0]) >= 0;
  }

  const double* points_;
  const std::int32_t* triangles_;
  const Label* sides_;
  std::array<double, 2> low_, high_;
  std::array<std::int64_t, 2> shape_;
  double step_;
  std::vector<std::int64_t> first_;  // of each column's entries
  std::vector<std::int32_t> entries_;
};

}  // namespace meshing
