// Dimension 2: the same union-find on the dual, where cubes are nodes, squares join them, and all that is not
// in the volume is one more node, older than every cube.
#pragma once

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
    region_.assign(field.grid.size(), kUnknown);
    for (std::size_t i = 0; i < cubes.size(); ++i)
      region_[base_of(field.grid, owner_of(cubes[i]), number_of(cubes[i]))] =
          static_cast<std::int32_t>(i + 1);
    closes.assign(squares.size(), 0);
    if (cubes.empty()) return;
    // As for components: paths in the order of memory, then union-find over critical cells alone.
    sides_.resize(squares.size());
    for (std::size_t i = 0; i < squares.size(); ++i) {
      if ((i & 0xffff) == 0) poll();
      const Voxel owner = owner_of(squares[i]);
      const int square = number_of(squares[i]);
      sides_[i] = {ascend(gradient, beyond(gradient, owner, square, 0)),
                   ascend(gradient, beyond(gradient, owner, square, 1))};
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
      pairs.push_back({owner_of(squares[*next]), owner_of(cubes[younger - 1]), 2, false});
    }
  }

 private:
  static constexpr std::int32_t kUnknown = -1, kOutsideNode = 0;
  static constexpr Voxel kNoCube = -1;

  // A cube is named by its corner of lowest index.
  static Voxel base_of(const Grid& grid, Voxel owner, int cube) {
    for (const int side : kCubeSides[cube])
      if (side % 2 == 0) owner += grid.step[side];
    return owner;
  }

  // The cube on one side (0: below, 1: above) of a square, or kNoCube.
  static Voxel beyond(const Gradient<Real>& gradient, Voxel owner, int square, int above) {
    const auto& step = gradient.field.grid.step;
    const int a = kSquareSides[square][0], b = kSquareSides[square][1];
    const int normal = 2 * (3 - a / 2 - b / 2);
    if (gradient.outside(owner + step[normal + above])) return kNoCube;
    return owner + (a % 2 ? 0 : step[a]) + (b % 2 ? 0 : step[b]) + (above ? 0 : step[normal]);
  }

  // The next cube along the gradient path up from this one, or the cube itself if it is critical (never
  // asked: region_ is known there), or kNoCube if the path leaves the volume.
  static Voxel next(const Gradient<Real>& gradient, Voxel base) {
    const Field<Real>& field = gradient.field;
    const auto& step = field.grid.step;
    Voxel owner = base;
    int cube = 7;
    for (int corner = 1; corner < 8; ++corner) {
      const Voxel voxel =
          base + (corner & 4 ? step[1] : 0) + (corner & 2 ? step[3] : 0) + (corner & 1 ? step[5] : 0);
      if (field.before(owner, voxel)) owner = voxel, cube = 7 - corner;
    }
    // Bit by bit, cube says in which direction it lies from its owner, in the order of kCubeSides.
    const int square = square_of_cube(gradient.lower_star(owner), cube);
    const int a = kSquareSides[square][0], b = kSquareSides[square][1];
    const int axis = 3 - a / 2 - b / 2;
    const bool is_above = cube >> (2 - axis) & 1;
    return beyond(gradient, owner, square, is_above ? 0 : 1);
  }

  std::int32_t ascend(const Gradient<Real>& gradient, Voxel start) {
    trail_.clear();
    Voxel cube = start;
    while (cube != kNoCube && region_[cube] == kUnknown) {
      trail_.push_back(cube);
      cube = next(gradient, cube);
    }
    const std::int32_t found = cube == kNoCube ? kOutsideNode : region_[cube];
    for (const Voxel passed : trail_) region_[passed] = found;
    return found;
  }

  Marks& region_;  // cube -> the critical cube (or the outside) above it
  std::vector<std::pair<std::int32_t, std::int32_t>> sides_;  // what lies above each critical square
  std::vector<Voxel> trail_;
  Forest forest_;
};

}  // namespace homology
