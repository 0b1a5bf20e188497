// The discrete gradient of the whole volume: the number of each voxel's lower star, and the critical cells.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <utility>
#include <vector>

#include "field.hpp"
#include "lower_star.hpp"

// A function so marked is compiled twice; at run time the version for AVX2 is taken if the processor has it.
#if defined(__x86_64__) && defined(__gnu_linux__) && defined(__GNUC__) && !defined(__clang__)
#define ANATOMICA_ALSO_AVX2 __attribute__((target_clones("avx2", "default")))
#else
#define ANATOMICA_ALSO_AVX2
#endif

namespace homology {

// Called often from within long loops; throws to stop the work.
using Poll = std::function<void()>;

// A cell by the voxel that owns it (its latest vertex) and its number in that voxel's star.
using Cell = std::uint32_t;
inline Cell make_cell(Voxel owner, int number) {
  return static_cast<Cell>(owner) << 4 | static_cast<Cell>(number);
}
inline Voxel owner_of(Cell cell) { return static_cast<Voxel>(cell >> 4); }
inline int number_of(Cell cell) { return static_cast<int>(cell & 15); }

// Which cells of each star are present: all their other vertices come before the voxel. Straight-line code
// over a row, without a branch, so that the compiler makes vector instructions of it.
template <class Real>
class RowStencil {
  using Lane = typename Field<Real>::Lane;

 public:
  RowStencil(const Grid& grid) : step_(grid.step) {}

  void operator()(const Real* row, std::int64_t length, Lane* __restrict keys, Lane* __restrict cubes) const {
    run(row, length, keys, cubes, std::make_index_sequence<12>(), std::make_index_sequence<8>());
  }

 private:
  // -1 if a neighbour with lower (higher) index comes before the centre, else 0.
  template <bool kLowerIndex>
  static Lane before(Real neighbour, Real centre) {
    return kLowerIndex ? -static_cast<Lane>(neighbour >= centre) : -static_cast<Lane>(neighbour > centre);
  }

  static constexpr int square_number(int a, int b) {
    for (int s = 0; s < 12; ++s)
      if (kSquareSides[s][0] == a && kSquareSides[s][1] == b) return s;
    return -1;
  }

  template <std::size_t... S, std::size_t... C>
  ANATOMICA_ALSO_AVX2 void run(const Real* row, std::int64_t length, Lane* __restrict keys,
                               Lane* __restrict cubes, std::index_sequence<S...>,
                               std::index_sequence<C...>) const {
    const Real* near[6] = {row + step_[0], row + step_[1], row + step_[2], row + step_[3], row - 1, row + 1};
    const Real* diagonal[12] = {(row + step_[kSquareSides[S][0]] + step_[kSquareSides[S][1]])...};
    const Real* corner[8] = {
        (row + step_[kCubeSides[C][0]] + step_[kCubeSides[C][1]] + step_[kCubeSides[C][2]])...};
    for (std::int64_t z = 0; z < length; ++z) {
      const Real centre = row[z];
      // A neighbour's index is lower than the voxel's if its first step goes down.
      const Lane edge[6] = {before<true>(near[0][z], centre), before<false>(near[1][z], centre),
                            before<true>(near[2][z], centre), before<false>(near[3][z], centre),
                            before<true>(near[4][z], centre), before<false>(near[5][z], centre)};
      const Lane square[12] = {(before<kSquareSides[S][0] % 2 == 0>(diagonal[S][z], centre) &
                                edge[kSquareSides[S][0]] & edge[kSquareSides[S][1]])...};
      const Lane cube[8] = {(before<kCubeSides[C][0] % 2 == 0>(corner[C][z], centre) &
                             square[square_number(kCubeSides[C][0], kCubeSides[C][1])] &
                             square[square_number(kCubeSides[C][0], kCubeSides[C][2])] &
                             square[square_number(kCubeSides[C][1], kCubeSides[C][2])])...};
      Lane key =
          (edge[0] & 1) | (edge[1] & 2) | (edge[2] & 4) | (edge[3] & 8) | (edge[4] & 16) | (edge[5] & 32);
      ((key |= square[S] & (Lane(64) << S)), ...);
      Lane filled = 0;
      ((filled |= cube[C] & (Lane(1) << C)), ...);
      keys[z] = key;
      cubes[z] = filled;
    }
  }

  std::array<Voxel, kDirections> step_;
};

struct Critical {
  std::vector<Cell> voxels, edges, squares, cubes;
  void clear() { voxels.clear(), edges.clear(), squares.clear(), cubes.clear(); }
};

template <class Real>
struct Gradient {
  using Lane = typename Field<Real>::Lane;

  Field<Real> field;
  std::vector<std::uint16_t> star;  // of each voxel: its number in kLowerStars
  Critical critical;                // in the order of their owners' indices

  const LowerStar& lower_star(Voxel voxel) const { return kLowerStars[star[voxel]]; }

  void build(const Poll& poll) {
    const std::uint16_t* const rows = star_table().row.data();
    const std::uint8_t* const marks = star_table().critical.data();
    const Grid& grid = field.grid;
    star.resize(grid.size());
    critical.clear();
    // Everything but the outermost layer has a star: the shell of the T-construction is part of the complex.
    // No cell has a vertex outside of it, so nobody asks for the others.
    const std::int64_t rim = grid.margin - 1, length = grid.shape[2] + 2 * rim;
    keys_.resize(length);
    cubes_.resize(length);
    Lane *const keys = keys_.data(), *const cubes = cubes_.data();
    const RowStencil<Real> stencil(grid);
    for (std::int64_t x = -rim; x < grid.shape[0] + rim; ++x) {
      poll();
      for (std::int64_t y = -rim; y < grid.shape[1] + rim; ++y) {
        const Voxel first = grid.row(x, y) - static_cast<Voxel>(rim);
        stencil(field.values.data() + first, length, keys, cubes);
        std::uint16_t* const numbers = star.data() + first;
        for (std::int64_t z = 0; z < length; ++z) {
          const std::uint16_t number = static_cast<std::uint16_t>(rows[keys[z]] + cubes[z]);
          numbers[z] = number;
          if (marks[number]) collect(first + static_cast<Voxel>(z), marks[number]);
        }
      }
    }
  }

 private:
  void collect(Voxel voxel, std::uint8_t bits) {
    const LowerStar& own = lower_star(voxel);
    if (bits & kHasVoxel) critical.voxels.push_back(make_cell(voxel, 0));
    for (int edge = 0; own.critical_edges >> edge; ++edge)
      if (own.critical_edges >> edge & 1) critical.edges.push_back(make_cell(voxel, edge));
    for (int square = 0; own.critical_squares >> square; ++square)
      if (own.critical_squares >> square & 1) critical.squares.push_back(make_cell(voxel, square));
    if (bits & kHasCube)
      for (int cube = 0; cube < 8; ++cube)
        if (square_of_cube(own, cube) == kCritical) critical.cubes.push_back(make_cell(voxel, cube));
  }

  std::vector<Lane> keys_, cubes_;
};

}  // namespace homology
