// The floor that any algorithm of this kind stands on: one pass that compares each voxel with its 26
// neighbours. Nothing but the benchmark uses it.
#pragma once

#include <array>
#include <cstdint>
#include <vector>

#include "field.hpp"

namespace homology {

// The mask of the neighbours that come before each voxel, in the C order of the volume.
template <class Real>
std::vector<std::uint32_t> neighbour_masks(const Field<Real>& field) {
  const Grid& grid = field.grid;
  std::array<Voxel, 26> offsets{};
  int count = 0;
  for (int x = -1; x <= 1; ++x)
    for (int y = -1; y <= 1; ++y)
      for (int z = -1; z <= 1; ++z)
        if (x || y || z) offsets[count++] = x * grid.step[1] + y * grid.step[3] + z;
  std::vector<std::uint32_t> masks(static_cast<std::size_t>(grid.volume_size()));
  std::uint32_t* __restrict out = masks.data();
  for (std::int64_t x = 0; x < grid.shape[0]; ++x)
    for (std::int64_t y = 0; y < grid.shape[1]; ++y, out += grid.shape[2]) {
      const Real* row = field.values.data() + grid.row(x, y);
      for (int n = 0; n < 26; ++n) {
        const Real* near = row + offsets[n];
        if (offsets[n] < 0)
          for (std::int64_t z = 0; z < grid.shape[2]; ++z) out[z] |= std::uint32_t(near[z] >= row[z]) << n;
        else
          for (std::int64_t z = 0; z < grid.shape[2]; ++z) out[z] |= std::uint32_t(near[z] > row[z]) << n;
      }
    }
  return masks;
}

}  // namespace homology
