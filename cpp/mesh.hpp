// The mesh of a label volume, step by step: complex, relaxation, triangles.
#pragma once

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>
#include <memory>
#include <utility>
#include <vector>

#include "mesh_complex.hpp"
#include "mesh_crossings.hpp"
#include "mesh_relax.hpp"
#include "mesh_triangles.hpp"
#include "mesh_volumes.hpp"

namespace meshing {

class Mesher {
  static constexpr double kEnough = 1e-5;  // volume error at which no further step is worth its time

 public:
  const Complex complex;

  Mesher(const Label* volume, std::array<std::int64_t, 3> shape, const std::vector<std::int32_t>& pinned)
      : complex(volume, shape, pinned), volumes_(complex.labels, complex.voxels), faces_{complex.quads, {}} {
    // Polygons of more corners are few: any split of theirs will do while the vertices move.
    for (const Polygon& p : complex.polygons)
      for (std::int32_t n = 2; n < p.count; ++n)
        faces_.triangles.push_back(
            {{complex.ring[p.first], complex.ring[p.first + n - 1], complex.ring[p.first + n]},
             p.below,
             p.above});
  }

  // The smoothest surface within the boxes, from `x` on.
  void relax(std::vector<Point>& x, int rounds, int every) {
    Relaxation(complex).run(x, volumes_, faces_, rounds, every);
  }

  // Triangles for vertices at x. With `rounds`, volumes are corrected that often at most; each time the
  // triangles that no longer suit are then replaced.
  Triangulation triangulate(std::vector<Point> x, const std::array<double, 3>& spacing, int rounds) const {
    auto made = std::make_unique<Triangulation>(complex, x, spacing);
    for (int round = 0; round < rounds; ++round) {
      Volumes volumes(made->labels, complex.voxels);
      if (volumes.correct(made->points, made->faces, made->low, made->high, 0, 0) < kEnough) break;
      volumes.correct(made->points, made->faces, made->low, made->high, kSteps, kEnough);
      x.assign(made->points.begin(), made->points.begin() + static_cast<std::ptrdiff_t>(x.size()));
      made = std::make_unique<Triangulation>(complex, x, spacing, made.get());
    }
    return std::move(*made);
  }

  // Cells whose vertices have triangles that are turned over or cross others. Only triangles beside special
  // vertices can: the others keep to their envelopes.
  std::vector<std::int32_t> tangled(const Triangulation& made) const {
    const auto& triangles = made.faces.triangles;
    std::vector<std::uint8_t> suspects(triangles.size(), 0);
    std::vector<std::int32_t> cells, corners(3 * triangles.size());
    bool any = false;
    for (std::size_t t = 0; t < triangles.size(); ++t) {
      bool special = made.axis[t] == 3;
      for (int n = 0; n < 3; ++n) {
        const Vertex v = corners[3 * t + n] = triangles[t].corners[n];
        special = special || (static_cast<std::size_t>(v) < complex.special.size() && complex.special[v]);
      }
      suspects[t] = special;
      any = any || special;
      if (special && turned(made, t)) add_cells(triangles[t], cells);
    }
    if (!any) return cells;
    // On the lattice that vertices are written on.
    std::vector<double> points(3 * made.points.size());
    for (std::size_t v = 0; v < made.points.size(); ++v)
      for (int axis = 0; axis < 3; ++axis) points[3 * v + axis] = made.points[v][axis];
    const Crossings crossings(points.data(), made.points.size(), corners.data(), triangles.size());
    for (const auto& [a, b] : crossings.find(&suspects))
      add_cells(triangles[a], cells), add_cells(triangles[b], cells);
    std::sort(cells.begin(), cells.end());
    cells.erase(std::unique(cells.begin(), cells.end()), cells.end());
    return cells;
  }

 private:
  static constexpr int kSteps = 4;  // of Newton's method, for triangles that stay the same

  static bool turned(const Triangulation& made, std::size_t t) {
    if (made.axis[t] == 3) return false;
    const auto& [a, b, c] = made.faces.triangles[t].corners;
    const Vector n =
        cross(difference(made.points[b], made.points[a]), difference(made.points[c], made.points[a]));
    return n[made.axis[t]] < kFlat;
  }
  static constexpr double kFlat = 1e-3;  // twice the area seen along the axis, in voxel faces

  void add_cells(const Triangle& triangle, std::vector<std::int32_t>& cells) const {
    for (const Vertex v : triangle.corners)
      if (static_cast<std::size_t>(v) < complex.special.size() && complex.special[v])
        cells.push_back(complex.cell[v]);
  }

  Volumes volumes_;
  Faces faces_;
};

}  // namespace meshing
