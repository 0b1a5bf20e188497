// Dimension 0: union-find over the critical edges.
#pragma once

#include <cstdint>
#include <utility>
#include <vector>

#include "gradient.hpp"
#include "pairs.hpp"

namespace homology {

// From each end of a critical edge the gradient leads down to one critical voxel; an edge that joins two
// components ends the younger one (the elder rule). Edges that join nothing are the births of loops.
template <class Real>
class Components {
 public:
  explicit Components(Marks& marks) : component_(marks) {}

  // order: the critical edges' positions, earliest first. joins[position] tells which edges ended a
  // component.
  void run(const Gradient<Real>& gradient, const std::vector<std::uint32_t>& order,
           std::vector<std::uint8_t>& joins, Pairs& pairs, const Poll& poll) {
    const std::vector<Cell>& voxels = gradient.critical.voxels;
    const std::vector<Cell>& edges = gradient.critical.edges;
    const Field<Real>& field = gradient.field;
    component_.assign(field.grid.size(), -1);
    for (std::size_t i = 0; i < voxels.size(); ++i)
      component_[owner_of(voxels[i])] = static_cast<std::int32_t>(i);
    // The paths are followed in the order of memory; the union-find below then touches only critical cells.
    ends_.resize(edges.size());
    for (std::size_t i = 0; i < edges.size(); ++i) {
      if ((i & 0xffff) == 0) poll();
      const Voxel owner = owner_of(edges[i]);
      ends_[i] = {descend(gradient, owner), descend(gradient, owner + field.grid.step[number_of(edges[i])])};
    }
    forest_.reset(voxels.size());
    joins.assign(edges.size(), 0);
    for (const std::uint32_t position : order) {
      const Voxel owner = owner_of(edges[position]);
      std::int32_t older = forest_.root(ends_[position].first),
                   younger = forest_.root(ends_[position].second);
      if (older == younger) continue;
      if (field.before(owner_of(voxels[younger]), owner_of(voxels[older]))) std::swap(older, younger);
      forest_.hang(younger, older);
      joins[position] = 1;
      pairs.push_back({owner_of(voxels[younger]), owner});
    }
    // The grid is connected, so one component is left: that of the first voxel of the filtration.
    essential = owner_of(voxels[forest_.root(0)]);
  }

  Voxel essential = 0;

 private:
  // The critical voxel that the gradient path from here ends in; every voxel on the way remembers it.
  std::int32_t descend(const Gradient<Real>& gradient, Voxel voxel) {
    const auto& step = gradient.field.grid.step;
    trail_.clear();
    for (; component_[voxel] < 0; voxel += step[gradient.lower_star(voxel).voxel_edge])
      trail_.push_back(voxel);
    const std::int32_t found = component_[voxel];
    for (const Voxel passed : trail_) component_[passed] = found;
    return found;
  }

  Marks& component_;  // voxel -> the critical voxel below it, -1 if not known yet
  std::vector<std::pair<std::int32_t, std::int32_t>> ends_;  // the critical voxels below each critical edge
  std::vector<Voxel> trail_;
  Forest forest_;
};

}  // namespace homology
