// The filtration's order of a list of critical cells.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <vector>

#include "field.hpp"
#include "gradient.hpp"

namespace homology {

// Positions into a list of cells, earliest cell first. The lists are made in the order of voxel index and
// number in the star, so a stable sort by value is the whole order; values are sorted by their bits, 11 at a
// time.
template <class Real>
class FiltrationSort {
  using Bits = decltype(descending_bits(Real()));
  struct Item {
    Bits bits;
    std::uint32_t position;
  };

 public:
  void operator()(const Field<Real>& field, const std::vector<Cell>& cells,
                  std::vector<std::uint32_t>& order) {
    const std::size_t count = cells.size();
    items_.resize(count);
    for (std::size_t i = 0; i < count; ++i)
      items_[i] = {descending_bits(field.values[owner_of(cells[i])]), static_cast<std::uint32_t>(i)};
    if (count < kSmall)
      std::sort(items_.begin(), items_.end(), [](const Item& a, const Item& b) {
        return a.bits != b.bits ? a.bits < b.bits : a.position < b.position;
      });
    else
      radix();
    order.resize(count);
    for (std::size_t i = 0; i < count; ++i) order[i] = items_[i].position;
  }

 private:
  static constexpr std::size_t kSmall = 4096;
  static constexpr int kDigit = 11;

  void radix() {
    other_.resize(items_.size());
    for (int shift = 0; shift < static_cast<int>(8 * sizeof(Bits)); shift += kDigit) {
      std::array<std::uint32_t, (1 << kDigit) + 1> start{};
      for (const Item& item : items_) ++start[(item.bits >> shift & ((1 << kDigit) - 1)) + 1];
      for (int digit = 0; digit < 1 << kDigit; ++digit) start[digit + 1] += start[digit];
      for (const Item& item : items_) other_[start[item.bits >> shift & ((1 << kDigit) - 1)]++] = item;
      items_.swap(other_);
    }
  }

  std::vector<Item> items_, other_;
};

}  // namespace homology
