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
    for (Pairs& pairs : pairs_) pairs.clear();
    if (components || loops) {
      sort_(gradient_.field, gradient_.critical.edges, edge_order_);
      components_.run(gradient_, edge_order_, joins_, pairs_[0], poll);
      if (components && !dual) pairs_[0].push_back({components_.essential, gradient_.field.last(), true});
    }
    if (voids || loops) {
      sort_(gradient_.field, gradient_.critical.squares, square_order_);
      voids_.run(gradient_, square_order_, closes_, pairs_[2], poll);
    }
    if (loops) loops_.run(gradient_, edge_order_, joins_, square_order_, closes_, pairs_[1], poll);
    if (dual) close_shell();
    if (options.reading.clamp > 0) plateaus_.find(gradient_.field, input, dual);
    write(options, features);
  }

 private:
  // The void that the shell alone encloses is the T-construction's essential component: it lasts to the
  // volume's minimum, which in the negated filtration is the first voxel after the shell.
  void close_shell() {
    const Field<Real>& field = gradient_.field;
    const Real infinity = std::numeric_limits<Real>::infinity();
    for (Pair& pair : pairs_[2])
      if (field.values[pair.birth] == infinity && field.values[pair.death] != infinity)
        pair = {field.first(), pair.death, true};
  }

  // Dimension by dimension; if only the top ones are wanted, the longest first.
  void write(const Options& options, std::vector<Feature<Real>>& features) {
    const Field<Real>& field = gradient_.field;
    const bool dual = options.reading.dual, clamped = options.reading.clamp > 0;
    if (!options.top) features.reserve(pairs_[0].size() + pairs_[1].size() + pairs_[2].size());
    for (std::uint8_t dim = 0; dim < 3; ++dim) {
      if (!options.dims[dim]) continue;
      const std::size_t first = features.size();
      const Pairs& pairs = pairs_[dual ? 2 - dim : dim];
      for (const Pair& pair : pairs) {
        const Real birth = field.values[pair.birth], death = field.values[pair.death];
        if (!(birth > death) ||
            static_cast<double>(birth) - static_cast<double>(death) < options.min_persistence)
          continue;
        const Voxel birth_voxel = clamped ? plateaus_.extreme(pair.birth, birth) : pair.birth,
                    death_voxel = clamped ? plateaus_.extreme(pair.death, death) : pair.death;
        if (dual)
          features.push_back({0 - death, 0 - birth, death_voxel, birth_voxel, dim, pair.essential});
        else
          features.push_back({birth, death, birth_voxel, death_voxel, dim, pair.essential});
      }
      if (options.top) keep_longest(features, first, static_cast<std::size_t>(options.top));
    }
    for (Feature<Real>& feature : features) {
      feature.birth_voxel = field.grid.flat(feature.birth_voxel);
      feature.death_voxel = field.grid.flat(feature.death_voxel);
    }
  }

  // Of the features from the first one on, the longest, in order.
  static void keep_longest(std::vector<Feature<Real>>& features, std::size_t first, std::size_t count) {
    const auto longer = [](const Feature<Real>& a, const Feature<Real>& b) {
      const Real length_a = a.birth - a.death, length_b = b.birth - b.death;
      if (length_a != length_b) return length_a > length_b;
      return a.birth_voxel != b.birth_voxel ? a.birth_voxel < b.birth_voxel : a.death_voxel < b.death_voxel;
    };
    const std::size_t end = first + std::min(count, features.size() - first);
    std::partial_sort(features.begin() + static_cast<std::ptrdiff_t>(first),
                      features.begin() + static_cast<std::ptrdiff_t>(end), features.end(), longer);
    features.resize(end);
  }

  Gradient<Real> gradient_;
  FiltrationSort<Real> sort_;
  Marks marks_;
  Components<Real> components_{marks_};
  Voids<Real> voids_{marks_};
  Loops<Real> loops_{marks_};
  Plateaus<Real> plateaus_;
  Pairs pairs_[3];  // by dimension
  std::vector<std::uint32_t> edge_order_, square_order_;
  std::vector<std::uint8_t> joins_, closes_;
};

}  // namespace homology
