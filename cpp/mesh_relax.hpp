// Where vertices go if only the label map is known: the smoothest surface within the vertices' boxes.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <utility>
#include <vector>

#include "mesh_volumes.hpp"

namespace meshing {

// Minimises the bending of the surface, the sum of |x - mean of its neighbours|^2 over the vertices, within
// the boxes: the boxes hold every voxel's centre on its own side, so this is the smoothest surface that would
// be written as the same label map. Projected gradient steps with momentum (FISTA). Unlike plain Laplacian
// relaxation it does not shrink what is round. Lines where three labels meet are smoothed along themselves.
class Relaxation {
 public:
  explicit Relaxation(const Complex& complex) : complex_(complex) {
    const std::size_t n = complex.start.size();
    feature_.assign(n, 0);
    for (const Edge& e : complex.edges)
      if (e.feature) feature_[e.from] = feature_[e.to] = 1;
    first_.assign(n + 1, 0);
    for (const Edge& e : complex.edges) {
      first_[e.from + 1] += counts(e, e.from);
      first_[e.to + 1] += counts(e, e.to);
    }
    for (std::size_t v = 0; v < n; ++v) first_[v + 1] += first_[v];
    next_.resize(static_cast<std::size_t>(first_[n]));
    std::vector<std::int32_t> place(first_.begin(), first_.end() - 1);
    for (const Edge& e : complex.edges) {
      if (counts(e, e.from)) next_[place[e.from]++] = e.to;
      if (counts(e, e.to)) next_[place[e.to]++] = e.from;
    }
  }

  // `rounds` steps; after each `every` of them, and at the end, the volumes are corrected and the momentum is
  // lost.
  void run(std::vector<Point>& x, Volumes& volumes, const Faces& faces, int rounds, int every) {
    for (int left = rounds; left > 0; left -= every) {
      smooth(x, std::min(left, every));
      volumes.correct(x, faces, complex_.low, complex_.high, 2, 1e-3);
    }
    volumes.correct(x, faces, complex_.low, complex_.high, 8, 1e-4);
  }

 private:
  // The inverse of the gradient's Lipschitz constant: the mean over neighbours has eigenvalues from -1 to 1.
  static constexpr float kStep = 0.25f;

  bool counts(const Edge& e, Vertex v) const { return e.feature || !feature_[v]; }

  // Four numbers a point, the last unused, so that one instruction reads, adds or writes all of them.
  using Lanes = std::array<float, 4>;

  static std::vector<Lanes> widened(const std::vector<Point>& x) {
    std::vector<Lanes> out(x.size());
    for (std::size_t v = 0; v < x.size(); ++v) out[v] = {x[v][0], x[v][1], x[v][2], 0};
    return out;
  }

  void smooth(std::vector<Point>& start, int rounds) const {
    const std::vector<Lanes> low = widened(complex_.low), high = widened(complex_.high);
    std::vector<Lanes> x = widened(start), ahead = x, bent(x.size());
    double t = 1;
    for (int round = 0; round < rounds; ++round) {
      bend(ahead, bent);
      const double after = (1 + std::sqrt(1 + 4 * t * t)) / 2;
      const float momentum = static_cast<float>((t - 1) / after);
      t = after;
      for (std::size_t v = 0; v < x.size(); ++v) {
        const Lanes mean = mean_bend(bent, v);
        for (int k = 0; k < 4; ++k) {
          float to = ahead[v][k] - kStep * (bent[v][k] - mean[k]);
          to = to < low[v][k] ? low[v][k] : to;
          to = to > high[v][k] ? high[v][k] : to;
          ahead[v][k] = to + momentum * (to - x[v][k]);
          x[v][k] = to;
        }
      }
    }
    for (std::size_t v = 0; v < x.size(); ++v) start[v] = {x[v][0], x[v][1], x[v][2]};
  }

  // bent = x - mean of the neighbours.
  void bend(const std::vector<Lanes>& x, std::vector<Lanes>& bent) const {
    for (std::size_t v = 0; v < x.size(); ++v) {
      Lanes sum{};
      for (std::int32_t i = first_[v]; i < first_[v + 1]; ++i)
        for (int k = 0; k < 4; ++k) sum[k] += x[next_[i]][k];
      const int count = first_[v + 1] - first_[v];
      const float share = 1.f / static_cast<float>(std::max(count, 1)), own = count > 0 ? 1.f : 0.f;
      for (int k = 0; k < 4; ++k) bent[v][k] = own * x[v][k] - share * sum[k];
    }
  }

  // The mean of the neighbours' bending. A line's own bending says nothing about the sheets that end there,
  // so sheets leave it out.
  Lanes mean_bend(const std::vector<Lanes>& bent, std::size_t v) const {
    Lanes sum{};
    int count = 0;
    for (std::int32_t i = first_[v]; i < first_[v + 1]; ++i) {
      const Vertex u = next_[i];
      if (feature_[u] != feature_[v]) continue;
      ++count;
      for (int k = 0; k < 4; ++k) sum[k] += bent[u][k];
    }
    const float share = 1.f / static_cast<float>(std::max(count, 1));
    for (int k = 0; k < 4; ++k) sum[k] *= share;
    return sum;
  }

  const Complex& complex_;
  std::vector<std::uint8_t> feature_;
  std::vector<std::int32_t> first_;
  std::vector<Vertex> next_;
};

}  // namespace meshing
