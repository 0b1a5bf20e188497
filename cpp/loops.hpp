// Dimension 1: reduction of the boundaries of the critical squares that closed no void, written in the critical
// edges that ended no component.
#pragma once

#include <algorithm>
#include <cstdint>
#include <utility>
#include <vector>

#include "bit_column.hpp"
#include "gradient.hpp"
#include "pairs.hpp"

namespace homology {

template <class Real>
class Loops {
 public:
  void run(const Gradient<Real>& gradient, const std::vector<std::uint32_t>& edge_order,
           const std::vector<std::uint8_t>& joins, const std::vector<std::uint32_t>& square_order,
           const std::vector<std::uint8_t>& closes, Pairs& pairs, const Poll& poll) {
    const std::vector<Cell>& edges = gradient.critical.edges;
    const std::vector<Cell>& squares = gradient.critical.squares;
    number_births(gradient, edge_order, joins);
    column_.reset(births_.size());
    reduced_of_.assign(births_.size(), kNone);
    start_.assign(1, 0);
    entries_.clear();
    chain_.assign(gradient.field.grid.size(), 0);
    std::size_t steps = 0;
    for (const std::uint32_t position : square_order) {
      if (closes[position]) continue;
      if ((++steps & 0xff) == 0) poll();
      flow_down(gradient, squares[position]);
      std::int64_t pivot = column_.largest();
      while (pivot >= 0 && reduced_of_[pivot] != kNone) {
        const std::int32_t addend = reduced_of_[pivot];
        column_.toggle(static_cast<std::uint32_t>(pivot));
        for (std::size_t i = start_[addend]; i < start_[addend + 1]; ++i) column_.toggle(entries_[i]);
        pivot = column_.largest();
      }
      if (pivot < 0) continue;  // never so: every void has been taken out
      reduced_of_[pivot] = static_cast<std::int32_t>(start_.size() - 1);
      pairs.push_back({owner_of(edges[births_[pivot]]), owner_of(squares[position]), 1, false});
      keep_reduced(pivot);
    }
  }

 private:
  static constexpr std::int32_t kNone = -1;
  static constexpr std::uint8_t kQueued = 64;

  // Rank the edges that give birth to loops in the filtration's order. The rank of an edge is found from its owner:
  // the list of critical edges has each owner's edges side by side.
  void number_births(const Gradient<Real>& gradient, const std::vector<std::uint32_t>& edge_order,
                     const std::vector<std::uint8_t>& joins) {
    const std::vector<Cell>& edges = gradient.critical.edges;
    births_.clear();
    rank_.assign(edges.size(), kNone);
    for (const std::uint32_t position : edge_order)
      if (!joins[position]) {
        rank_[position] = static_cast<std::int32_t>(births_.size());
        births_.push_back(position);
      }
    first_edge_.resize(gradient.field.grid.size());
    for (std::size_t i = edges.size(); i-- > 0;) first_edge_[owner_of(edges[i])] = static_cast<std::int32_t>(i);
  }

  // Add to the chain the edge from one voxel in a direction. An edge paired with a voxel has no critical cell below
  // it in dimension 1 and vanishes; a critical one goes to the column; only those paired with a square flow on.
  void add_edge(const Gradient<Real>& gradient, Voxel from, int direction) {
    const Field<Real>& field = gradient.field;
    const Voxel to = from + field.grid.step[direction];
    const bool owned_by_from = field.before(to, from);
    const Voxel owner = owned_by_from ? from : to;
    const int edge = owned_by_from ? direction : direction ^ 1;
    const LowerStar& star = gradient.lower_star(owner);
    const int square = square_of_edge(star, edge);
    if (square == kToVoxel) return;
    if (square == kCritical) return add_critical(owner, star, edge);
    chain_[owner] ^= 1 << edge;
    if (chain_[owner] & kQueued) return;
    chain_[owner] |= kQueued;
    queue_.emplace_back(descending_bits(field.values[owner]), owner);
    std::push_heap(queue_.begin(), queue_.end());
  }

  void add_critical(Voxel owner, const LowerStar& star, int edge) {
    int skipped = 0;
    for (int lower = 0; lower < edge; ++lower) skipped += star.critical_edges >> lower & 1;
    const std::int32_t rank = rank_[first_edge_[owner] + skipped];
    if (rank != kNone) column_.toggle(static_cast<std::uint32_t>(rank));
  }

  // The boundary of a critical square in the Morse complex, into column_. Voxels are taken latest first, so each
  // is met once, with the parity of all that flows into it.
  void flow_down(const Gradient<Real>& gradient, Cell square) {
    const auto& step = gradient.field.grid.step;
    const int a = kSquareSides[number_of(square)][0], b = kSquareSides[number_of(square)][1];
    const Voxel owner = owner_of(square);
    add_edge(gradient, owner, a);
    add_edge(gradient, owner, b);
    add_edge(gradient, owner + step[a], b);
    add_edge(gradient, owner + step[b], a);
    while (!queue_.empty()) {
      const Voxel voxel = queue_.front().second;
      std::pop_heap(queue_.begin(), queue_.end());
      queue_.pop_back();
      flow_through(gradient, voxel);
    }
  }

  // Replace each edge of the chain that this voxel owns by the rest of the boundary of the square paired with it.
  void flow_through(const Gradient<Real>& gradient, Voxel voxel) {
    const LowerStar& star = gradient.lower_star(voxel);
    const auto& step = gradient.field.grid.step;
    std::uint8_t own = chain_[voxel] & (kQueued - 1);
    chain_[voxel] = 0;
    while (own) {
      int edge = 0;
      while (!(own >> edge & 1)) ++edge;
      own &= own - 1;
      const int square = square_of_edge(star, edge);
      const int a = kSquareSides[square][0], b = kSquareSides[square][1];
      const int other = a == edge ? b : a;
      const int onward = square_of_edge(star, other);
      if (onward == kCritical)
        add_critical(voxel, star, other);
      else if (onward != kToVoxel)
        own ^= 1 << other;
      add_edge(gradient, voxel + step[edge], other);
      add_edge(gradient, voxel + step[other], edge);
    }
  }

  // Empty the column into the store of reduced columns, without its pivot.
  void keep_reduced(std::int64_t pivot) {
    for (std::int64_t entry = pivot; entry >= 0; entry = column_.largest()) {
      if (entry != pivot) entries_.push_back(static_cast<std::uint32_t>(entry));
      column_.toggle(static_cast<std::uint32_t>(entry));
    }
    start_.push_back(entries_.size());
  }

  BitColumn column_;
  std::vector<std::uint32_t> births_;      // rank -> position in the list of critical edges
  std::vector<std::int32_t> rank_;         // position -> rank, kNone for edges that join components
  std::vector<std::int32_t> first_edge_;   // owner -> position of its first critical edge
  std::vector<std::int32_t> reduced_of_;   // pivot's rank -> number of the reduced column
  std::vector<std::size_t> start_;         // where each reduced column starts in entries_
  std::vector<std::uint32_t> entries_;
  std::vector<std::uint8_t> chain_;        // for each voxel the mask of its edges in the chain that flows
  std::vector<std::pair<decltype(descending_bits(Real())), Voxel>> queue_;
};

}  // namespace homology
