// The flow of a chain of edges down the gradient, until only critical edges are left of it.
#pragma once

#include <algorithm>
#include <cstdint>
#include <type_traits>
#include <utility>
#include <vector>

#include "gradient.hpp"

namespace homology {

// An edge paired with its voxel has no critical edge below it and vanishes; an edge paired with a square is
// replaced by the three other sides of that square; a critical edge is handed to a sink. All voxels that own
// edges of the chain wait in a queue and are taken latest first: an edge's flow only reaches earlier voxels,
// so each voxel is met once, with the parity of all that flows into it.
template <class Real>
class Flow {
  using Bits = decltype(descending_bits(Real()));

 public:
  void reset(const Gradient<Real>& gradient) {
    gradient_ = &gradient;
    chain_.assign(gradient.field.grid.size(), 0);
    heap_.clear();
    newest_ = kNever;
  }

  bool empty() const { return newest_ == kNever && heap_.empty(); }

  // The latest voxel of the chain.
  Voxel latest() const { return voxel_of(heap_.empty() ? newest_ : std::max(newest_, heap_.front())); }

  template <class Sink>
  void add_boundary(Cell square, Sink sink) {
    const auto& step = gradient_->field.grid.step;
    const int a = kSquareSides[number_of(square)][0], b = kSquareSides[number_of(square)][1];
    const Voxel owner = owner_of(square);
    add_owned(owner, gradient_->lower_star(owner), a, sink);
    add_owned(owner, gradient_->lower_star(owner), b, sink);
    add_edge(owner + step[a], b, sink);
    add_edge(owner + step[b], a, sink);
  }

  // Add back an edge that rest() gave out.
  void add(Cell edge) { enqueue(owner_of(edge), static_cast<std::uint8_t>(1 << number_of(edge))); }

  // Let the edges of the latest voxel flow on.
  template <class Sink>
  void step(Sink sink) {
    const Voxel voxel = pop();
    const LowerStar& star = gradient_->lower_star(voxel);
    const auto& step = gradient_->field.grid.step;
    std::uint8_t own = chain_[voxel] & (kQueued - 1);
    chain_[voxel] = 0;
    while (own) {
      const int edge = kLowestBit[own];
      own &= own - 1;
      const int square = square_of_edge(star, edge);
      const int other = kSquareSides[square][0] ^ kSquareSides[square][1] ^ edge;
      const int onward = square_of_edge(star, other);
      if (onward == kCritical)
        sink(voxel, star, other);
      else if (onward != kToVoxel)
        own ^= 1 << other;
      add_edge(voxel + step[edge], other, sink);
      add_edge(voxel + step[other], edge, sink);
    }
  }

  // Empty the chain, appending the edges that have not flowed.
  void rest(std::vector<Cell>& edges) {
    if (newest_ != kNever) heap_.push_back(newest_);
    newest_ = kNever;
    for (const Moment& moment : heap_) {
      const Voxel voxel = voxel_of(moment);
      for (std::uint8_t own = chain_[voxel] & (kQueued - 1); own; own &= own - 1)
        edges.push_back(make_cell(voxel, kLowestBit[own]));
      chain_[voxel] = 0;
    }
    heap_.clear();
  }

 private:
  static constexpr std::uint8_t kQueued = 64;
  static constexpr std::uint8_t kLowestBit[64] = {
      0, 0, 1, 0, 2, 0, 1, 0, 3, 0, 1, 0, 2, 0, 1, 0, 4, 0, 1, 0, 2, 0, 1, 0, 3, 0, 1, 0, 2, 0, 1, 0,
      5, 0, 1, 0, 2, 0, 1, 0, 3, 0, 1, 0, 2, 0, 1, 0, 4, 0, 1, 0, 2, 0, 1, 0, 3, 0, 1, 0, 2, 0, 1, 0};

  // When a voxel enters the filtration, as one number if value and index fit one.
  using Moment = std::conditional_t<sizeof(Bits) == 4, std::uint64_t, std::pair<std::uint64_t, Voxel>>;
  static Moment moment(Bits bits, Voxel voxel) {
    if constexpr (sizeof(Bits) == 4)
      return static_cast<std::uint64_t>(bits) << 32 | static_cast<std::uint32_t>(voxel);
    else
      return {bits, voxel};
  }
  static Voxel voxel_of(const Moment& moment) {
    if constexpr (sizeof(Bits) == 4)
      return static_cast<Voxel>(moment & 0xffffffffu);
    else
      return moment.second;
  }
  static constexpr Moment kNever{};  // voxel 0 is in the margin

  template <class Sink>
  void add_edge(Voxel from, int direction, Sink sink) {
    // The later end owns the edge: it is in the lower star of one end and absent from the other's.
    const LowerStar& star = gradient_->lower_star(from);
    if (square_of_edge(star, direction) != kAbsent) return add_owned(from, star, direction, sink);
    const Voxel to = from + gradient_->field.grid.step[direction];
    add_owned(to, gradient_->lower_star(to), direction ^ 1, sink);
  }

  template <class Sink>
  void add_owned(Voxel owner, const LowerStar& star, int edge, Sink sink) {
    const int square = square_of_edge(star, edge);
    if (square == kToVoxel) return;
    if (square == kCritical) return sink(owner, star, edge);
    enqueue(owner, static_cast<std::uint8_t>(1 << edge));
  }

  // The newest member waits outside the heap: along a path of single edges it is the next one to be taken.
  void enqueue(Voxel owner, std::uint8_t edges) {
    chain_[owner] ^= edges;
    if (chain_[owner] & kQueued) return;
    chain_[owner] |= kQueued;
    Moment entered = moment(descending_bits(gradient_->field.values[owner]), owner);
    if (newest_ < entered) std::swap(newest_, entered);
    if (entered == kNever) return;
    heap_.push_back(entered);
    std::push_heap(heap_.begin(), heap_.end());
  }

  Voxel pop() {
    Moment taken = newest_;
    if (heap_.empty() || heap_.front() < newest_) {
      newest_ = kNever;
    } else {
      taken = heap_.front();
      std::pop_heap(heap_.begin(), heap_.end());
      heap_.pop_back();
    }
    return voxel_of(taken);
  }

  const Gradient<Real>* gradient_ = nullptr;
  std::vector<std::uint8_t>
      chain_;  // for each voxel the mask of its edges in the chain, and whether it is queued
  std::vector<Moment> heap_;
  Moment newest_ = kNever;
};

}  // namespace homology
