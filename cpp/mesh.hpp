// The mesh of a label volume, step by step: complex, relaxation, triangles.
#pragma once

#include <array>
#include <cmath>
#include <cstdint>
#include <vector>

#include "mesh_complex.hpp"
#include "mesh_relax.hpp"
#include "mesh_triangles.hpp"
#include "mesh_volumes.hpp"

namespace meshing {

class Mesher {
  static constexpr double kEnough = 1e-5;  // volume error at which no further step is worth its time

 public:
  const Complex complex;

  Mesher(const Label* volume, std::array<std::int64_t, 3> shape)
      : complex(volume, shape), volumes_(complex.labels, complex.voxels), faces_{complex.quads, {}} {
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

  // Triangles for vertices at x. With `steps`, volumes are corrected as well, by that many steps at most.
  Triangulation triangulate(std::vector<Point> x, const std::array<double, 3>& spacing, int steps) const {
    Triangulation made(complex, x, spacing);
    if (steps == 0) return made;
    for (int round = 0; round < 2; ++round) {
      Volumes volumes(made.labels, complex.voxels);
      volumes.correct(made.points, made.faces, made.low, made.high, steps, kEnough);
      if (round == 1) break;
      // What moved may want other diagonals; the points on segments are then placed anew.
      x.assign(made.points.begin(), made.points.begin() + static_cast<std::ptrdiff_t>(x.size()));
      Triangulation again(complex, x, spacing);
      std::swap(made.points, again.points), std::swap(made.low, again.low), std::swap(made.high, again.high);
      std::swap(made.labels, again.labels), std::swap(made.faces, again.faces),
          std::swap(made.axis, again.axis);
    }
    return made;
  }

 private:
  Volumes volumes_;
  Faces faces_;
};

}  // namespace meshing
