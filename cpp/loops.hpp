// Dimension 1: reduction of the boundaries of the critical squares that closed no void, written in the
// critical edges that ended no component.
#pragma once

#include <algorithm>
#include <cstdint>
#include <functional>
#include <vector>

#include "bit_column.hpp"
#include "flow.hpp"
#include "gradient.hpp"
#include "pairs.hpp"

namespace homology {

// A column is the boundary of a square in the Morse complex: the ranks of critical edges, and a tail of edges
// that have not flowed down yet. Only the latest critical edge, the pivot, has to be known to pair a square,
// so the tail flows no further than needed to be sure of it.
template <class Real>
class Loops {
 public:
  explicit Loops(Marks& marks) : first_edge_(marks) {}

  void run(const Gradient<Real>& gradient, const std::vector<std::uint32_t>& edge_order,
           const std::vector<std::uint8_t>& joins, const std::vector<std::uint32_t>& square_order,
           const std::vector<std::uint8_t>& closes, Pairs& pairs, const Poll& poll) {
    const std::vector<Cell>& squares = gradient.critical.squares;
    number_births(gradient, edge_order, joins);
    flow_.reset(gradient);
    start_columns(gradient, closes, poll);
    working_.reset(births_.size());
    reduced_of_.assign(births_.size(), kNone);
    std::size_t steps = 0;
    for (const std::uint32_t position : square_order) {
      if (closes[position]) continue;
      if ((++steps & 0xff) == 0) poll();
      const std::int64_t pivot = reduce(gradient.field, position);
      reduced_of_[pivot] = static_cast<std::int32_t>(position);
      pairs.push_back({births_[pivot], owner_of(squares[position])});
    }
  }

 private:
  static constexpr std::int32_t kNone = -1;
  // How many voxels a column flows through at first: kGlance, and up to kEager if its pivot is not sure by
  // then. Those first steps go through the squares in the order of memory, which makes them cheap; most
  // columns of a noisy volume come to their end in them. On a plateau paths are long and nearly all pairs have
  // no persistence, so few columns are ever added to another: there a column stops as soon as its pivot is
  // sure. Each limit is twice the one before, plus one, from 0 up to kEager.
  static constexpr int kGlance = 15, kEager = 31;

  struct Column {
    std::uint32_t ranks_begin, ranks_end, tail_begin, tail_end;
    bool settled;  // the whole tail is earlier than the first of the ranks, which is the pivot
  };

  // Rank the edges that give birth to loops in the filtration's order. The rank of an edge is found from its
  // owner: the list of critical edges has each owner's edges side by side.
  void number_births(const Gradient<Real>& gradient, const std::vector<std::uint32_t>& edge_order,
                     const std::vector<std::uint8_t>& joins) {
    const std::vector<Cell>& edges = gradient.critical.edges;
    births_.clear();
    rank_.assign(edges.size(), kNone);
    for (const std::uint32_t position : edge_order)
      if (!joins[position]) {
        rank_[position] = static_cast<std::int32_t>(births_.size());
        births_.push_back(owner_of(edges[position]));
      }
    first_edge_.resize(gradient.field.grid.size());
    for (std::size_t i = edges.size(); i-- > 0;)
      first_edge_[owner_of(edges[i])] = static_cast<std::int32_t>(i);
  }

  std::int32_t rank(Voxel owner, const LowerStar& star, int edge) const {
    int before = 0;
    for (int lower = 0; lower < edge; ++lower) before += star.critical_edges >> lower & 1;
    return rank_[first_edge_[owner] + before];
  }

  void start_columns(const Gradient<Real>& gradient, const std::vector<std::uint8_t>& closes,
                     const Poll& poll) {
    const std::vector<Cell>& squares = gradient.critical.squares;
    ranks_.clear();
    tails_.clear();
    columns_.assign(squares.size(), Column{});
    const auto sink = [this](Voxel owner, const LowerStar& star, int edge) {
      const std::int32_t found = rank(owner, star, edge);
      if (found != kNone) found_.push_back(static_cast<std::uint32_t>(found));
    };
    for (std::size_t i = 0; i < squares.size(); ++i) {
      if ((i & 0xff) == 0) poll();
      if (closes[i]) continue;
      found_.clear();
      flow_.add_boundary(squares[i], sink);
      Column& column = columns_[i];
      int steps = 0;
      for (int limit = is_flat(gradient.field, squares[i]) ? 0 : kGlance; limit <= kEager;
           limit = 2 * limit + 1) {
        for (; steps < limit && !flow_.empty(); ++steps) flow_.step(sink);
        cancel_twins(found_);
        column.settled = !found_.empty() && is_settled(gradient.field, found_.front());
        if (column.settled || flow_.empty()) break;
      }
      column.ranks_begin = static_cast<std::uint32_t>(ranks_.size());
      ranks_.insert(ranks_.end(), found_.begin(), found_.end());
      column.ranks_end = static_cast<std::uint32_t>(ranks_.size());
      column.tail_begin = static_cast<std::uint32_t>(tails_.size());
      flow_.rest(tails_);
      column.tail_end = static_cast<std::uint32_t>(tails_.size());
    }
  }

  // All corners of the square have one value.
  static bool is_flat(const Field<Real>& field, Cell square) {
    const Voxel a = field.grid.step[kSquareSides[number_of(square)][0]],
                b = field.grid.step[kSquareSides[number_of(square)][1]];
    const Real* const value = field.values.data() + owner_of(square);
    return value[a] == *value && value[b] == *value && value[a + b] == *value;
  }

  // Sort ranks, largest first, and take out those that are there twice: twice is nothing.
  static void cancel_twins(std::vector<std::uint32_t>& ranks) {
    std::sort(ranks.begin(), ranks.end(), std::greater<>());
    std::size_t kept = 0;
    for (std::size_t i = 0; i < ranks.size(); ++i)
      if (i + 1 < ranks.size() && ranks[i] == ranks[i + 1])
        ++i;
      else
        ranks[kept++] = ranks[i];
    ranks.resize(kept);
  }

  // Add reduced columns to a square's column until its pivot is new, and return the pivot. The squares that
  // closed voids have been taken out, so no column becomes empty.
  std::int64_t reduce(const Field<Real>& field, std::uint32_t position) {
    Column& own = columns_[position];
    if (own.settled && reduced_of_[ranks_[own.ranks_begin]] == kNone) return ranks_[own.ranks_begin];
    add(own);
    std::int64_t pivot = settle(field);
    for (; reduced_of_[pivot] != kNone; pivot = settle(field)) add(columns_[reduced_of_[pivot]]);
    own.ranks_begin = static_cast<std::uint32_t>(ranks_.size());
    for (std::int64_t entry = pivot; entry >= 0; entry = working_.largest()) {
      ranks_.push_back(static_cast<std::uint32_t>(entry));
      working_.toggle(static_cast<std::uint32_t>(entry));
    }
    own.ranks_end = static_cast<std::uint32_t>(ranks_.size());
    own.tail_begin = static_cast<std::uint32_t>(tails_.size());
    flow_.rest(tails_);
    own.tail_end = static_cast<std::uint32_t>(tails_.size());
    return pivot;
  }

  void add(const Column& column) {
    for (std::uint32_t i = column.ranks_begin; i < column.ranks_end; ++i) working_.toggle(ranks_[i]);
    for (std::uint32_t i = column.tail_begin; i < column.tail_end; ++i) flow_.add(tails_[i]);
  }

  // Nothing that is yet to flow can bring a later critical edge than the pivot (-1: there is none yet).
  bool is_settled(const Field<Real>& field, std::int64_t pivot) const {
    return flow_.empty() || (pivot >= 0 && field.before(flow_.latest(), births_[pivot]));
  }

  // Let the tail flow until all of it is earlier than the latest critical edge; returns that edge's rank.
  std::int64_t settle(const Field<Real>& field) {
    const auto sink = [this](Voxel owner, const LowerStar& star, int edge) {
      const std::int32_t found = rank(owner, star, edge);
      if (found != kNone) working_.toggle(static_cast<std::uint32_t>(found));
    };
    std::int64_t pivot = working_.largest();
    while (!is_settled(field, pivot)) {
      flow_.step(sink);
      pivot = working_.largest();
    }
    return pivot;
  }

  Flow<Real> flow_;
  BitColumn working_;
  std::vector<Voxel> births_;             // rank -> owner of the critical edge
  std::vector<std::int32_t> rank_;        // position in the list of critical edges -> rank, kNone if it joins
  Marks& first_edge_;                     // owner -> position of its first critical edge
  std::vector<std::int32_t> reduced_of_;  // pivot's rank -> position of the square whose column has it
  std::vector<Column> columns_;           // for each critical square
  std::vector<std::uint32_t> ranks_, found_;
  std::vector<Cell> tails_;
};

}  // namespace homology
