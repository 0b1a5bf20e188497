// The table of lower-star gradients that tools/lower_star_table.py derives, and how to read it.
#pragma once

#include <array>
#include <cstdint>
#include <vector>

namespace homology {

// The gradient of one lower star. A square of the star is named by its number in kSquareSides, a cube in
// kCubeSides, an edge by its direction. Slots of four bits hold the number of a square or one of the marks
// below.
struct LowerStar {
  std::uint32_t square_of_edge;  // for each direction: the square paired with that edge
  std::uint32_t square_of_cube;  // for each cube: the square paired with it
  std::uint16_t critical_squares;
  std::uint8_t critical_edges;
  std::uint8_t voxel_edge;  // the edge paired with the voxel itself, or kNoEdge: the voxel is critical
};

struct StarRow {
  std::uint32_t key;
  std::uint16_t offset;
};

constexpr int kCritical = 12, kToVoxel = 13, kAbsent = 15;
constexpr int kNoEdge = 6;
constexpr int kStarKeys = 1 << 18;

#include "lower_star_table.inc"

enum CriticalBits : std::uint8_t { kHasVoxel = 1, kHasEdges = 2, kHasSquares = 4, kHasCube = 8 };

// The lower star of a voxel is number row[key] + cubes, where key = edges | squares << 6 are the masks of
// what is in it. See place_rows() in the script for why one addition is enough.
struct StarTable {
  std::vector<std::uint16_t> row = std::vector<std::uint16_t>(kStarKeys);
  std::array<std::uint8_t, kStarCount> critical{};

  StarTable() {
    for (const StarRow& entry : kStarRows) row[entry.key] = entry.offset;
    for (int number = 0; number < kStarCount; ++number) {
      const LowerStar& star = kLowerStars[number];
      std::uint8_t bits = 0;
      if (star.voxel_edge == kNoEdge) bits |= kHasVoxel;
      if (star.critical_edges) bits |= kHasEdges;
      if (star.critical_squares) bits |= kHasSquares;
      for (int cube = 0; cube < 8; ++cube)
        if ((star.square_of_cube >> 4 * cube & 15) == kCritical) bits |= kHasCube;
      critical[number] = bits;
    }
  }
};

inline const StarTable& star_table() {
  static const StarTable table;
  return table;
}

inline int square_of_edge(const LowerStar& star, int edge) { return star.square_of_edge >> 4 * edge & 15; }
inline int square_of_cube(const LowerStar& star, int cube) { return star.square_of_cube >> 4 * cube & 15; }

}  // namespace homology
