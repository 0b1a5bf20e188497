// Dimension 2: the same union-find on the dual, where cubes are nodes, squares join them, and all that is not
// in the volume is one more node, older than every cube.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <utility>
#include <vector>

#include "gradient.hpp"
#include "pairs.hpp"

namespace homology {

template <class Real>
class Voids {
 public:
  explicit Voids(Marks& marks) : region_(marks) {}

  // order: the critical squares' positions, earliest first; they are taken latest first here, because in the
  // dual a cube is there before the squares around it. closes[position] tells which squares closed a void.
  void run(const Gradient<Real>& gradient, const std::vector<std::uint32_t>& order,
           std::vector<std::uint8_t>& closes, Pairs& pairs, const Poll& poll) {
    const std::vector<Cell>& cubes = gradient.critical.cubes;
    const std::vector<Cell>& squares = gradient.critical.squares;
    const Field<Real>& field = gradient.field;
    closes.assign(squares.size(), 0);
    if (cubes.empty()) return;
    mark_cubes(field.grid, cubes);
    // As for components: paths in the order of memory, then union-find over critical cells alone.
    sides_.resize(squares.size());
    for (std::size_t i = 0; i < squares.size(); ++i) {
      if ((i & 0xffff) == 0) poll();
      const Voxel owner = owner_of(squares[i]);
      const int square = number_of(squares[i]), axis = normal_of(square), below = cube_below(square);
      sides_[i] = {ascend(gradient, owner, below, axis), ascend(gradient, owner, below | 4 >> axis, axis)};
    }
    forest_.reset(cubes.size() + 1);
    for (auto next = order.rbegin(); next != order.rend(); ++next) {
      std::int32_t older = forest_.root(sides_[*next].first), younger = forest_.root(sides_[*next].second);
      if (older == younger) continue;
      if (younger == kOutsideNode ||
          (older != kOutsideNode && field.before(owner_of(cubes[older - 1]), owner_of(cubes[younger - 1]))))
        std::swap(older, younger);
      forest_.hang(younger, older);
      closes[*next] = 1;
      pairs.push_back({owner_of(squares[*next]), owner_of(cubes[younger - 1])});
    }
  }

 private:
  static constexpr std::int32_t kUnknown = -1, kOutsideNode = 0;

  // Seen from a corner, bit 2 - axis of a cube's number says whether the cube lies up that axis (the order of
  // kCubeSides). So the cube on the other side of a square has that bit flipped, and a cube seen from another
  // corner the bits of the axes along which the corners differ.
  static int normal_of(int square) { return 3 - kSquareSides[square][0] / 2 - kSquareSides[square][1] / 2; }
  static int cube_below(int square) {
    const int a = kSquareSides[square][0], b = kSquareSides[square][1];
    return (a % 2 ? 4 >> a / 2 : 0) | (b % 2 ? 4 >> b / 2 : 0);
  }
  // The corners away from a square of that normal, as bits that differ from those of the square's owner.
  static constexpr int kAway[3][4] = {{4, 6, 5, 7}, {2, 6, 3, 7}, {1, 5, 3, 7}};

  // A cube is named by its corner of lowest index. Cubes that reach into the margin are the outside.
  void mark_cubes(const Grid& grid, const std::vector<Cell>& cubes) {
    for (int cube = 0; cube < 8; ++cube) {
      base_[cube] = 0;
      for (const int side : kCubeSides[cube])
        if (side % 2 == 0) base_[cube] += grid.step[side];
    }
    region_.resize(grid.size());
    const std::int64_t length = grid.padded[2];
    auto row = region_.begin();
    for (std::int64_t x = 0; x < grid.padded[0]; ++x)
      for (std::int64_t y = 0; y < grid.padded[1]; ++y, row += length) {
        const bool within = x > 0 && x < grid.padded[0] - 2 && y > 0 && y < grid.padded[1] - 2;
        std::fill(row, row + length, within ? kUnknown : kOutsideNode);
        row[0] = row[length - 2] = row[length - 1] = kOutsideNode;
      }
    for (std::size_t i = 0; i < cubes.size(); ++i)
      region_[owner_of(cubes[i]) + base_[number_of(cubes[i])]] = static_cast<std::int32_t>(i + 1);
  }

  // The critical cube, or the outside, in which the dual's gradient path ends: it leaves each cube through
  // the square paired with it. It begins in a cube that is entered through a square of normal `axis`, seen
  // from that square's owner. Every cube on the way remembers the end.
  std::int32_t ascend(const Gradient<Real>& gradient, Voxel owner, int cube, int axis) {
    trail_.clear();
    Voxel base = owner + base_[cube];
    while (region_[base] == kUnknown) {
      trail_.push_back(base);
      int square = square_of_cube(gradient.lower_star(owner), cube);
      if (square == kAbsent) {
        // The square's owner is not the cube's: that is the one corner away from the square whose lower star
        // has the cube.
        const int seen = cube;
        for (const int* away = kAway[axis]; square == kAbsent; ++away) {
          cube = seen ^ *away;
          owner = base - base_[cube];
          square = square_of_cube(gradient.lower_star(owner), cube);
        }
      }
      axis = normal_of(square);
      cube ^= 4 >> axis;
      base = owner + base_[cube];
    }
    const std::int32_t found = region_[base];
    for (const Voxel passed : trail_) region_[passed] = found;
    return found;
  }

  Marks& region_;                // cube -> the critical cube (or the outside) above it
  std::array<Voxel, 8> base_{};  // from a corner to the lowest corner of each cube around it
  std::vector<std::pair<std::int32_t, std::int32_t>> sides_;  // what lies above each critical square
  std::vector<Voxel> trail_;
  Forest forest_;
};

}  // namespace homology
