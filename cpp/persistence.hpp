// The persistence diagram of one volume, pass by pass.
#pragma once

#include <algorithm>
#include <cstdint>
#include <limits>
#include <vector>

#include "components.hpp"
#include "gradient.hpp"
#include "loops.hpp"
#include "plateaus.hpp"
#include "sort.hpp"
#include "voids.hpp"

namespace homology {

struct Options {
  bool dims[3] = {true, true, true};
  Reading reading;
  double min_persistence = 0.0;
  std::int64_t top = 0;  // the most persistent ones of each dimension; 0: all
};

template <class Real>
struct Feature {
  Real birth, death;
  Voxel birth_voxel, death_voxel;  // in the C order of the volume
  std::uint8_t dim;
  bool essential;
};

// Everything a run needs, kept from one volume to the next so that memory is taken once.
template <class Real>
class Workspace {
 public:
  Workspace() = default;
  Workspace(const Workspace&) = delete;

  void run(const Real* input, std::array<std::int64_t, 3> shape, const Options& options, const Poll& poll,
           std::vector<Feature<Real>>& features) {
    features.clear();
    if (shape[0] * shape[1] * shape[2] == 0) return;
    const bool dual = options.reading.dual;
    // Alexander duality turns the classes of dimension k into those of dimension 2 - k.
    const bool components = options.dims[dual ? 2 : 0], loops = options.dims[1],
               voids = options.dims[dual ? 0 : 2];
    if (!components && !loops && !voids) return;
    gradient_.field.load(input, shape, options.reading);
    gradient_.build(poll);
    pairs_.clear();
    if (components || loops) {
      sort_(gradient_.field, gradient_.critical.edges, edge_order_);
      components_.run(gradient_, edge_order_, joins_, pairs_, poll);
      if (components && !dual) pairs_.push_back({components_.essential, last_voxel(), 0, true});
      if (!components) pairs_.clear();
    }
    if (voids || loops) {
      const std::size_t before = pairs_.size();
      sort_(gradient_.field, gradient_.critical.squares, square_order_);
      voids_.run(gradient_, square_order_, closes_, pairs_, poll);
      if (!voids) pairs_.resize(before);
    }
    if (loops) loops_.run(gradient_, edge_order_, joins_, square_order_, closes_, pairs_, poll);
    if (dual) close_shell();
    drop_short(options);
    if (options.reading.clamp > 0) plateaus_.relocate(gradient_.field, input, dual, pairs_);
    write(options, features);
  }

 private:
  // The volume's last voxel in the filtration: its minimum, the last of several.
  Voxel last_voxel() const {
    return extreme_voxel([this](Voxel a, Voxel b) { return gradient_.field.before(a, b); });
  }

  Voxel first_voxel() const {
    return extreme_voxel([this](Voxel a, Voxel b) { return gradient_.field.before(b, a); });
  }

  template <class Better>
  Voxel extreme_voxel(Better better) const {
    const Grid& grid = gradient_.field.grid;
    Voxel best = grid.row(0, 0);
    for (std::int64_t x = 0; x < grid.shape[0]; ++x)
      for (std::int64_t y = 0; y < grid.shape[1]; ++y) {
        const Voxel first = grid.row(x, y), end = first + static_cast<Voxel>(grid.shape[2]);
        for (Voxel voxel = first; voxel < end; ++voxel)
          if (better(best, voxel)) best = voxel;
      }
    return best;
  }

  void drop_short(const Options& options) {
    const std::vector<Real>& values = gradient_.field.values;
    const auto short_lived = [&](const Pair& pair) {
      const Real birth = values[pair.birth], death = values[pair.death];
      return !(birth > death) ||
             static_cast<double>(birth) - static_cast<double>(death) < options.min_persistence;
    };
    pairs_.erase(std::remove_if(pairs_.begin(), pairs_.end(), short_lived), pairs_.end());
  }

  // The void that the shell alone encloses is the T-construction's essential component: it lasts to the
  // volume's minimum, which in the negated filtration is the first voxel after the shell.
  void close_shell() {
    const std::vector<Real>& values = gradient_.field.values;
    const Real infinity = std::numeric_limits<Real>::infinity();
    for (Pair& pair : pairs_)
      if (values[pair.birth] == infinity && values[pair.death] != infinity)
        pair.birth = first_voxel(), pair.essential = true;
  }

  // Dimension by dimension; if only the top ones are wanted, the longest first.
  void write(const Options& options, std::vector<Feature<Real>>& features) {
    const Field<Real>& field = gradient_.field;
    const bool dual = options.reading.dual;
    features.reserve(options.top ? 0 : pairs_.size());
    for (std::uint8_t dim = 0; dim < 3; ++dim) {
      chosen_.clear();
      for (const Pair& pair : pairs_)
        if (pair.dim == (dual ? 2 - dim : dim)) chosen_.push_back(pair);
      if (options.top) keep_longest(static_cast<std::size_t>(options.top));
      for (const Pair& pair : chosen_) {
        const Real birth = field.values[pair.birth], death = field.values[pair.death];
        const Voxel birth_voxel = field.grid.flat(pair.birth), death_voxel = field.grid.flat(pair.death);
        if (dual)
          features.push_back({0 - death, 0 - birth, death_voxel, birth_voxel, dim, pair.essential});
        else
          features.push_back({birth, death, birth_voxel, death_voxel, dim, pair.essential});
      }
    }
  }

  void keep_longest(std::size_t count) {
    const std::vector<Real>& values = gradient_.field.values;
    const auto longer = [&](const Pair& a, const Pair& b) {
      const Real length_a = values[a.birth] - values[a.death], length_b = values[b.birth] - values[b.death];
      if (length_a != length_b) return length_a > length_b;
      return a.birth != b.birth ? a.birth < b.birth : a.death < b.death;
    };
    const std::size_t kept = std::min(count, chosen_.size());
    std::partial_sort(chosen_.begin(), chosen_.begin() + static_cast<std::ptrdiff_t>(kept), chosen_.end(),
                      longer);
    chosen_.resize(kept);
  }

  Gradient<Real> gradient_;
  FiltrationSort<Real> sort_;
  Marks marks_;
  Components<Real> components_{marks_};
  Voids<Real> voids_{marks_};
  Loops<Real> loops_{marks_};
  Plateaus<Real> plateaus_;
  Pairs pairs_, chosen_;
  std::vector<std::uint32_t> edge_order_, square_order_;
  std::vector<std::uint8_t> joins_, closes_;
};

}  // namespace homology
