// The voxel grid with a margin around it, so that no neighbour of a voxel is ever out of memory.
#pragma once

#include <array>
#include <cstdint>
#include <stdexcept>

namespace homology {

// A voxel by its index in the grid with margin. Its order is the C order of the volume's own indices.
using Voxel = std::int32_t;

// Directions are 2 * axis + (1 if up the axis): the opposite of d is d ^ 1. The same numbers as in
// tools/lower_star_table.py.
constexpr int kDirections = 6;

struct Grid {
  std::array<std::int64_t, 3> shape{};   // of the volume itself
  std::array<std::int64_t, 3> padded{};  // with the margin
  std::array<Voxel, kDirections> step{};
  int margin = 0;

  Grid() = default;
  Grid(std::array<std::int64_t, 3> volume_shape, int margin_width)
      : shape(volume_shape), margin(margin_width) {
    double count = 1;
    for (int axis = 0; axis < 3; ++axis) {
      padded[axis] = shape[axis] + 2 * margin;
      count *= static_cast<double>(padded[axis]);
    }
    // A cell is packed as voxel << 4 | number in its star, in 32 bits.
    if (count >= static_cast<double>(1 << 28))
      throw std::length_error("a volume may have at most 2^28 voxels");
    const Voxel z = 1, y = static_cast<Voxel>(padded[2]), x = static_cast<Voxel>(padded[1] * padded[2]);
    step = {-x, x, -y, y, -z, z};
  }

  std::size_t size() const { return static_cast<std::size_t>(padded[0] * padded[1] * padded[2]); }
  std::int64_t volume_size() const { return shape[0] * shape[1] * shape[2]; }

  // The first voxel of row (x, y) of the volume.
  Voxel row(std::int64_t x, std::int64_t y) const {
    return static_cast<Voxel>(((x + margin) * padded[1] + (y + margin)) * padded[2] + margin);
  }

  // The index of a voxel of the volume in the volume's own C order.
  Voxel flat(Voxel voxel) const {
    // Divisions of 32 bits: there are four for each pair, and those of 64 take twice as long.
    const Voxel length = static_cast<Voxel>(padded[2]), lines = static_cast<Voxel>(padded[1]);
    const Voxel line = voxel / length, z = voxel % length - margin;
    const Voxel x = line / lines - margin, y = line % lines - margin;
    return static_cast<Voxel>((x * shape[1] + y) * shape[2] + z);
  }
};

}  // namespace homology
