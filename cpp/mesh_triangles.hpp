// Triangles for the polygons: without crossings, none turned over.
#pragma once

#include <array>
#include <cmath>
#include <cstdint>
#include <vector>

#include "mesh_volumes.hpp"

namespace meshing {

// A quad lies around the segment between the centres of its two voxels, with one corner in each of the four
// cells there, and the four tetrahedra of that segment and two consecutive corners are its envelope.
// Envelopes of different quads have no inner points in common, so triangles that keep to their envelopes
// never cross (Ju and Udeshi 2006, "Intersection-free contouring on an octree grid"; on a uniform grid the
// segment between two neighbouring corners always passes through the cells' common face). A diagonal is
// taken if it lies in the envelope, the one with the larger smallest angle if both do; if neither does,
// four triangles meet at a point on the segment. Seen along the segment every triangle has the orientation
// of the voxels' face.
class Triangulation {
 public:
  std::vector<Point> points, low, high;  // the complex' vertices, then those on segments
  std::vector<Octants> labels;
  Faces faces;                    // triangles only
  std::vector<std::int8_t> axis;  // of the voxels' face that each triangle stands for, 3: of a lens

  // With a triangulation from `before` its choices are kept where they still do.
  Triangulation(const Complex& complex, const std::vector<Point>& x, const std::array<double, 3>& spacing,
                const Triangulation* before = nullptr)
      : points(x), low(complex.low), high(complex.high), labels(complex.labels), spacing_(spacing) {
    faces.triangles.reserve(2 * complex.quads.size());
    axis.reserve(2 * complex.quads.size());
    choices_.reserve(complex.quads.size() + complex.polygons.size());
    for (const Quad& q : complex.quads) {
      const int old = before == nullptr ? kNone : before->choices_[choices_.size()];
      const int choice = choose(q, old);
      if (choice < 0)
        fan(q.corners.data(), 4, q, old < 0 ? before->points[-1 - old] : q.centre, old < 0);
      else
        cut(q.corners.data(), choice, q), choices_.push_back(choice);
    }
    for (const Polygon& p : complex.polygons) {
      const int old = before == nullptr ? kNone : before->choices_[choices_.size()];
      const Vertex* ring = complex.ring.data() + p.first;
      if (p.axis < 3) {
        fan(ring, p.count, p, old < 0 ? before->points[-1 - old] : p.centre, old < 0);
        continue;
      }
      const int choice = old != kNone ? old : smallest_angle(ring, 0) < smallest_angle(ring, 1);
      if (p.count == 3)
        add(ring[0], ring[1], ring[2], p);
      else
        cut(ring, choice, p);
      choices_.push_back(choice);
    }
  }

 private:
  // A corner as seen along the quad's segment: across it, and along it from 0 to 1.
  struct Seen {
    double s, t, z;
  };

  static double turn(const Seen& a, const Seen& b) { return a.s * b.t - a.t * b.s; }

  int choose(const Quad& q, int old) const {
    if (old < 0) return -1;
    const int k = q.axis, i = (k + 1) % 3, j = (k + 2) % 3;
    std::array<Seen, 4> seen;
    for (int n = 0; n < 4; ++n) {
      const Point& p = points[q.corners[n]];
      seen[n] = {p[i] - static_cast<double>(q.centre[i]), p[j] - static_cast<double>(q.centre[j]),
                 p[k] - static_cast<double>(q.centre[k]) + 0.5};
    }
    const bool first = in_envelope(seen, 0), second = in_envelope(seen, 1);
    if ((old == 0 && first) || (old == 1 && second)) return old;
    if (first && second) return smallest_angle(q.corners.data(), 0) < smallest_angle(q.corners.data(), 1);
    return first ? 0 : second ? 1 : -1;
  }

  // The diagonal from corner n to n + 2 passes the segment on the side of one of the other corners, w. It is
  // in the envelope if it passes through the triangle of the segment and w.
  static bool in_envelope(const std::array<Seen, 4>& seen, int n) {
    const Seen &a = seen[n], &b = seen[n + 2];
    const Seen& w = turn(a, b) >= 0 ? seen[n + 1] : seen[(n + 3) % 4];
    const double at_a = turn(w, a), at_b = turn(w, b);
    if (!(std::abs(at_a - at_b) > 1e-12)) return false;
    const double share = at_a / (at_a - at_b);
    const double s = a.s + share * (b.s - a.s), t = a.t + share * (b.t - a.t), z = a.z + share * (b.z - a.z);
    const double far = (s * w.s + t * w.t) / (w.s * w.s + w.t * w.t);
    // Not all the way to w, where the triangle would have no area.
    return far <= kShy && z >= far * w.z + kTiny && z <= 1 - far * (1 - w.z) - kTiny;
  }

  Vector in_mm(Vertex v) const {
    const Point& p = points[v];
    return {spacing_[0] * p[0], spacing_[1] * p[1], spacing_[2] * p[2]};
  }

  // The largest cosine of an angle of the two triangles that a diagonal makes.
  double largest_cosine(const Vertex* q, int diagonal) const {
    const Vector a = in_mm(q[diagonal]), b = in_mm(q[diagonal + 1]), c = in_mm(q[diagonal + 2]),
                 d = in_mm(q[(diagonal + 3) % 4]);
    return std::max(largest_cosine(a, b, c), largest_cosine(a, c, d));
  }
  double smallest_angle(const Vertex* q, int diagonal) const { return -largest_cosine(q, diagonal); }

  static double largest_cosine(const Vector& a, const Vector& b, const Vector& c) {
    const auto squared = [](const Vector& p, const Vector& q) {
      const Vector d{p[0] - q[0], p[1] - q[1], p[2] - q[2]};
      return dot(d, d);
    };
    const double x = squared(b, c), y = squared(c, a), z = squared(a, b);
    const double cosines[3] = {(y + z - x) / (2 * std::sqrt(y * z)), (z + x - y) / (2 * std::sqrt(z * x)),
                               (x + y - z) / (2 * std::sqrt(x * y))};
    return std::max(std::max(cosines[0], cosines[1]), cosines[2]);
  }

  template <class Face>
  void cut(const Vertex* q, int diagonal, const Face& face) {
    add(q[diagonal], q[diagonal + 1], q[diagonal + 2], face);
    add(q[diagonal], q[diagonal + 2], q[(diagonal + 3) % 4], face);
  }

  // Triangles around a point on the segment: at `at` if that is where it was before, else amid the corners.
  template <class Face>
  void fan(const Vertex* ring, std::int32_t count, const Face& face, Point at, bool placed) {
    double sum = 0, weights = 0;
    const int k = face.axis, i = (k + 1) % 3, j = (k + 2) % 3;
    for (std::int32_t n = 0; n < count && !placed; ++n) {
      const Point& p = points[ring[n]];
      const double w = 1 / (std::hypot(p[i] - at[i], p[j] - at[j]) + 1e-3);
      sum += w * p[k], weights += w;
    }
    if (!placed)
      at[k] = std::clamp(static_cast<float>(sum / weights), face.centre[k] - kReach, face.centre[k] + kReach);
    const Vertex middle = static_cast<Vertex>(points.size());
    points.push_back(at), low.push_back(at), high.push_back(at);
    low.back()[k] = face.centre[k] - kReach, high.back()[k] = face.centre[k] + kReach;
    labels.push_back(
        {face.below, face.below, face.below, face.below, face.above, face.above, face.above, face.above});
    bool rim = true;  // a cut of the volume stays flat
    for (std::int32_t n = 0; n < count; ++n) rim &= low[ring[n]][k] == high[ring[n]][k];
    if (rim) low.back()[k] = high.back()[k] = at[k];
    choices_.push_back(-1 - middle);
    for (std::int32_t n = 0; n < count; ++n) add(middle, ring[n], ring[(n + 1) % count], face);
  }

  template <class Face>
  void add(Vertex a, Vertex b, Vertex c, const Face& face) {
    faces.triangles.push_back({{a, b, c}, face.below, face.above});
    axis.push_back(static_cast<std::int8_t>(face.axis));
  }

  static constexpr int kNone = 2;
  static constexpr double kShy = 0.9, kTiny = 1e-4;
  const std::array<double, 3> spacing_;
  std::vector<int> choices_;  // of each quad, then polygon: a diagonal, or -1 - the vertex on the segment
};

}  // namespace meshing
