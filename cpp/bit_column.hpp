// A set of integers under symmetric difference that knows its largest member: a column of a matrix over Z/2.
#pragma once

#include <cstdint>
#include <vector>

namespace homology {

inline int highest_bit(std::uint64_t word) {
#if defined(__GNUC__) || defined(__clang__)
  return 63 - __builtin_clzll(word);
#else
  int bit = 0;
  while (word >>= 1) ++bit;
  return bit;
#endif
}

// A bit for each integer, and above it a tree of words that tell which words below are not zero.
class BitColumn {
 public:
  void reset(std::size_t size) {
    levels_.clear();
    do {
      size = size / 64 + 1;
      levels_.emplace_back(size, 0);
    } while (size > 1);
  }

  void toggle(std::uint32_t index) {
    std::uint64_t* word = &levels_[0][index >> 6];
    const std::uint64_t was = *word;
    *word ^= std::uint64_t(1) << (index & 63);
    if (was && *word) return;
    // The word became empty or stopped being so: tell the levels above, as far as that changes them.
    const bool filled = *word != 0;
    for (std::size_t level = 1; level < levels_.size(); ++level) {
      index >>= 6;
      word = &levels_[level][index >> 6];
      const std::uint64_t before = *word, bit = std::uint64_t(1) << (index & 63);
      *word = filled ? before | bit : before & ~bit;
      if (filled ? before != 0 : *word != 0) return;
    }
  }

  // The largest member, or -1.
  std::int64_t largest() const {
    std::int64_t index = 0;
    if (levels_.back()[0] == 0) return -1;
    for (std::size_t level = levels_.size(); level-- > 0;)
      index = index << 6 | highest_bit(levels_[level][index]);
    return index;
  }

 private:
  std::vector<std::vector<std::uint64_t>> levels_;
};

}  // namespace homology
