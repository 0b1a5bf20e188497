// What the passes hand on: pairs of voxels that give birth and death to a class.
#pragma once

#include <cstdint>
#include <vector>

#include "grid.hpp"

namespace homology {

struct Pair {
  Voxel birth, death;
  bool essential = false;
};

using Pairs = std::vector<Pair>;

// A number for each voxel. The passes run one after another and share one such array.
using Marks = std::vector<std::int32_t>;

// Union-find where the older root always survives; the caller says which is older. Path halving alone keeps
// the trees flat enough.
class Forest {
 public:
  void reset(std::size_t count) {
    parent_.resize(count);
    for (std::size_t i = 0; i < count; ++i) parent_[i] = static_cast<std::int32_t>(i);
  }
  std::int32_t root(std::int32_t node) {
    while (parent_[node] != node) node = parent_[node] = parent_[parent_[node]];
    return node;
  }
  void hang(std::int32_t younger, std::int32_t older) { parent_[younger] = older; }

 private:
  std::vector<std::int32_t> parent_;
};

}  // namespace homology
