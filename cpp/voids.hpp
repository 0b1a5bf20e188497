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
      sides_[i] = {ascend(gradient, {owner, square, 0}), ascend(gradient, {owner, square, 1})};
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
  static constexpr Voxel kNoCube = -1;

  // A cube is named by its corner of lowest index.
  static Voxel base_of(const Grid& grid, Voxel owner, int cube) {
    for (const int side : kCubeSides[cube])
      if (side % 2 == 0) owner += grid.step[side];
    return owner;
  }

  // A step of a gradient path in the dual: through a square, given by its owner and number, to its side below
  // (0) or above (1).
  struct Step {
    Voxel owner;
    int square, above;
  };

  // The cube that a step leads to, or kNoCube if it leads out of the volume.
  static Voxel target(const Gradient<Real>& gradient, const Step& through) {
    const auto& step = gradient.field.grid.step;
    const int a = kSquareSides[through.square][0], b = kSquareSides[through.square][1];
    const int normal = 2 * (3 - a / 2 - b / 2);
    if (gradient.outside(through.owner + step[normal + through.above])) return kNoCube;
    return through.owner + (a % 2 ? 0 : step[a]) + (b % 2 ? 0 : step[b]) + (through.above ? 0 : step[normal]);
  }

  // The step that leads on from the cube where this one led: out through the square paired with that cube.
  static Step next(const Gradient<Real>& gradient, const Step& through) {
    const auto& step = gradient.field.grid.step;
    const int a = kSquareSides[through.square][0], b = kSquareSides[through.square][1];
    const int axis = 3 - a / 2 - b / 2;
    // The cube as seen from the square's owner. Bit 2 - axis of a cube's number says whether it lies up that
    // axis from its corner (the order of kCubeSides).
    const int bit_a = 4 >> a / 2, bit_b = 4 >> b / 2, bit_normal = 4 >> axis;
    int cube = (a % 2 ? bit_a : 0) | (b % 2 ? bit_b : 0) | (through.above ? bit_normal : 0);
    Voxel owner = through.owner;
    int square = square_of_cube(gradient.lower_star(owner), cube);
    if (square == kAbsent) {
      // The square's owner is not the cube's: that is one of the four corners away from the square, the one
      // whose lower star has the cube.
      const Voxel far = owner + step[2 * axis + through.above];
      const Voxel corners[4] = {far, far + step[a], far + step[b], far + step[a] + step[b]};
      const int numbers[4] = {cube ^ bit_normal, cube ^ bit_normal ^ bit_a, cube ^ bit_normal ^ bit_b,
                              cube ^ bit_normal ^ bit_a ^ bit_b};
      int corner = 0;
      while ((square = square_of_cube(gradient.lower_star(corners[corner]), numbers[corner])) == kAbsent)
        ++corner;
      owner = corners[corner];
      cube = numbers[corner];
    }
    const int out_axis = 3 - kSquareSides[square][0] / 2 - kSquareSides[square][1] / 2;
    return {owner, square, cube >> (2 - out_axis) & 1 ? 0 : 1};
  }

  // The critical cube that the path ends in, or the outside; every cube on the way remembers it.
  std::int32_t ascend(const Gradient<Real>& gradient, Step through) {
    trail_.clear();
    Voxel cube = target(gradient, through);
    while (cube != kNoCube && region_[cube] == kUnknown) {
      trail_.push_back(cube);
      through = next(gradient, through);
      cube = target(gradient, through);
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
