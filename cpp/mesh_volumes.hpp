// Volumes of labels under a surface, and small moves of the surface that correct them.
#pragma once

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>
#include <utility>
#include <vector>

#include "mesh_complex.hpp"

namespace meshing {

using Vector = std::array<double, 3>;

inline Vector difference(const Point& a, const Point& b) {
  return {static_cast<double>(a[0]) - b[0], static_cast<double>(a[1]) - b[1],
          static_cast<double>(a[2]) - b[2]};
}
inline Vector cross(const Vector& a, const Vector& b) {
  return {a[1] * b[2] - a[2] * b[1], a[2] * b[0] - a[0] * b[2], a[0] * b[1] - a[1] * b[0]};
}
inline double dot(const Vector& a, const Vector& b) { return a[0] * b[0] + a[1] * b[1] + a[2] * b[2]; }

// A triangle between two labels; its normal points from `below` to `above`.
struct Triangle {
  std::array<Vertex, 3> corners;
  Label below, above;
};

// Faces of a surface. A quad stands for the mean of the two ways to split it.
struct Faces {
  std::vector<Quad> quads;
  std::vector<Triangle> triangles;
};

class Volumes {
 public:
  // `labels`: those around each vertex; `wanted`: the volume of each label, in voxels.
  Volumes(const std::vector<Octants>& labels, const std::array<std::int64_t, 256>& wanted) {
    number_.fill(-1);
    for (int l = 1; l < 256; ++l)
      if (wanted[l] > 0)
        number_[l] = static_cast<int>(wanted_.size()), wanted_.push_back(static_cast<double>(wanted[l]));
    first_.reserve(labels.size() + 1);
    for (const Octants& own : labels) {
      first_.push_back(static_cast<std::int32_t>(label_.size()));
      for (int o = 0; o < 8; ++o) {
        const int l = number_[own[o]];
        if (l < 0 || (o > 0 && own[o] == own[o - 1])) continue;
        if (std::find(label_.begin() + first_.back(), label_.end(), l) == label_.end()) label_.push_back(l);
      }
    }
    first_.push_back(static_cast<std::int32_t>(label_.size()));
    slope_.resize(label_.size());
  }

  // Volumes under the faces, by the divergence theorem.
  std::vector<double> measure(const std::vector<Point>& x, const Faces& faces) const {
    std::vector<double> volume(wanted_.size(), 0);
    const auto add = [&](const auto& face, double v) {
      if (number_[face.below] >= 0) volume[number_[face.below]] += v;
      if (number_[face.above] >= 0) volume[number_[face.above]] -= v;
    };
    for (const Quad& q : faces.quads) {
      const Point &a = x[q.corners[0]], &b = x[q.corners[1]], &c = x[q.corners[2]], &d = x[q.corners[3]];
      const Vector ac = difference(c, a), bd = difference(d, b), ab = difference(b, a), ad = difference(d, a);
      // Both triangles of one diagonal from a, and the fold between the diagonals, half of which counts.
      const Vector base{a[0], a[1], a[2]};
      add(q, dot(base, cross(ac, bd)) / 6 + dot(ac, cross(ad, ab)) / 12);
    }
    for (const Triangle& t : faces.triangles) {
      const Point &a = x[t.corners[0]], &b = x[t.corners[1]], &c = x[t.corners[2]];
      add(t, dot(Vector{a[0], a[1], a[2]}, cross(difference(b, a), difference(c, a))) / 6);
    }
    return volume;
  }

  // Move all vertices along their labels' normals, each label by a bias of its own, until the volumes are the
  // wanted ones: Newton's method on the biases. A vertex at the rim of its box stays there, so more than one
  // step may be needed. Returns the largest error left, as a share of the wanted volume.
  double correct(std::vector<Point>& x, const Faces& faces, const std::vector<Point>& low,
                 const std::vector<Point>& high, int steps, double enough) {
    for (int step = 0;; ++step) {
      const std::vector<double> now = measure(x, faces);
      double worst = 0;
      for (std::size_t l = 0; l < now.size(); ++l)
        worst = std::max(worst, std::abs(now[l] - wanted_[l]) / wanted_[l]);
      if (step == steps || worst < enough) return worst;
      find_slopes(x, faces);
      std::vector<double> missing(now.size()), bias;
      for (std::size_t l = 0; l < now.size(); ++l) missing[l] = wanted_[l] - now[l];
      // First with all vertices free, then without those that would leave their boxes.
      for (const bool boxed : {false, true}) bias = solve(matrix(x, low, high, bias, boxed), missing);
      for (std::size_t v = 0; v < x.size(); ++v) {
        const Vector by = move(v, bias);
        for (int axis = 0; axis < 3; ++axis)
          x[v][axis] = std::clamp(x[v][axis] + static_cast<float>(by[axis]), low[v][axis], high[v][axis]);
      }
    }
  }

 private:
  struct Slope {
    Vector volume;  // d volume / d vertex
    double scale;   // 1 / its length: a bias moves all vertices equally far, whatever area they have
  };

  void find_slopes(const std::vector<Point>& x, const Faces& faces) {
    for (Slope& s : slope_) s.volume = {0, 0, 0};
    for (const Quad& q : faces.quads) {
      const Vector n =
          cross(difference(x[q.corners[2]], x[q.corners[0]]), difference(x[q.corners[3]], x[q.corners[1]]));
      for (const Vertex v : q.corners) add_slope(v, q.below, n, 0.125), add_slope(v, q.above, n, -0.125);
    }
    for (const Triangle& t : faces.triangles) {
      const Vector n =
          cross(difference(x[t.corners[1]], x[t.corners[0]]), difference(x[t.corners[2]], x[t.corners[0]]));
      for (const Vertex v : t.corners) add_slope(v, t.below, n, 1. / 6), add_slope(v, t.above, n, -1. / 6);
    }
    for (Slope& s : slope_) {
      const double length = std::sqrt(dot(s.volume, s.volume));
      s.scale = length > 1e-3 ? 1 / length : 0;
    }
  }

  void add_slope(Vertex v, Label label, const Vector& n, double share) {
    const int l = number_[label];
    if (l < 0) return;
    std::int32_t entry = first_[v];
    while (label_[entry] != l) ++entry;
    for (int axis = 0; axis < 3; ++axis) slope_[entry].volume[axis] += share * n[axis];
  }

  Vector move(std::size_t v, const std::vector<double>& bias) const {
    Vector by{};
    for (std::int32_t e = first_[v]; e < first_[v + 1]; ++e)
      for (int axis = 0; axis < 3; ++axis)
        by[axis] += bias[label_[e]] * slope_[e].scale * slope_[e].volume[axis];
    return by;
  }

  // d volume of label l / d bias of label m. With `boxed`, coordinates that `bias` would move out of their
  // boxes count as fixed.
  std::vector<double> matrix(const std::vector<Point>& x, const std::vector<Point>& low,
                             const std::vector<Point>& high, const std::vector<double>& bias,
                             bool boxed) const {
    const std::size_t n = wanted_.size();
    std::vector<double> sum(n * n, 0);
    for (std::size_t v = 0; v < x.size(); ++v) {
      std::array<double, 3> free{};
      const Vector by = boxed ? move(v, bias) : Vector{};
      for (int axis = 0; axis < 3; ++axis) {
        const double to = x[v][axis] + by[axis];
        free[axis] = low[v][axis] < high[v][axis] && to >= low[v][axis] && to <= high[v][axis];
      }
      for (std::int32_t e = first_[v]; e < first_[v + 1]; ++e)
        for (std::int32_t f = first_[v]; f < first_[v + 1]; ++f) {
          double product = 0;
          for (int axis = 0; axis < 3; ++axis)
            product += free[axis] * slope_[e].volume[axis] * slope_[f].volume[axis];
          sum[label_[e] * n + label_[f]] += slope_[f].scale * product;
        }
    }
    return sum;
  }

  // Gaussian elimination with the largest pivot of each column; a label that cannot move gets no bias.
  static std::vector<double> solve(std::vector<double> a, std::vector<double> b) {
    const std::size_t n = b.size();
    for (std::size_t i = 0; i < n; ++i) a[i * n + i] += 1e-9 + 1e-6 * std::abs(a[i * n + i]);
    for (std::size_t c = 0; c < n; ++c) {
      std::size_t pivot = c;
      for (std::size_t r = c + 1; r < n; ++r)
        if (std::abs(a[r * n + c]) > std::abs(a[pivot * n + c])) pivot = r;
      if (std::abs(a[pivot * n + c]) < 1e-12) continue;
      for (std::size_t k = 0; k < n; ++k) std::swap(a[c * n + k], a[pivot * n + k]);
      std::swap(b[c], b[pivot]);
      for (std::size_t r = c + 1; r < n; ++r) {
        const double f = a[r * n + c] / a[c * n + c];
        for (std::size_t k = c; k < n; ++k) a[r * n + k] -= f * a[c * n + k];
        b[r] -= f * b[c];
      }
    }
    for (std::size_t c = n; c-- > 0;) {
      for (std::size_t k = c + 1; k < n; ++k) b[c] -= a[c * n + k] * b[k];
      b[c] = std::abs(a[c * n + c]) < 1e-12 ? 0 : b[c] / a[c * n + c];
      b[c] = std::clamp(b[c], -0.5, 0.5);  // voxels: never further than a box
    }
    return b;
  }

  std::array<int, 256> number_;  // label -> its place among the labels present, -1 for the background
  std::vector<double> wanted_;
  std::vector<std::int32_t> first_;  // of each vertex's labels in label_ and slope_
  std::vector<int> label_;
  std::vector<Slope> slope_;
};

}  // namespace meshing
