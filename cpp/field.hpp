// The values of one volume on the padded grid, and the order in which its voxels enter the filtration.
#pragma once

#include <cmath>
#include <cstdint>
#include <cstring>
#include <limits>
#include <stdexcept>
#include <type_traits>
#include <vector>

#include "grid.hpp"

namespace homology {

struct NotFinite : std::runtime_error {
  NotFinite() : std::runtime_error("the volume holds NaN or infinite values") {}
};

struct OutOfRange : std::runtime_error {
  OutOfRange() : std::runtime_error("clamp needs values in [0, 1]") {}
};

// How the numbers of the input become the filtration's values.
struct Reading {
  bool dual = false;   // T-construction: the negated volume inside a shell that comes before everything
  double clamp = 0.0;  // values below it are 0, above 1 - clamp are 1; 0 leaves all as they are
};

// Superlevel filtration: voxel a comes before b if its value is higher, or equal and its index lower.
template <class Real>
struct Field {
  // Flags as wide as the values, so that loops over both become vector instructions.
  using Lane = std::conditional_t<sizeof(Real) == 4, std::int32_t, std::int64_t>;

  Grid grid;
  std::vector<Real> values;

  bool before(Voxel a, Voxel b) const { return values[a] > values[b] || (values[a] == values[b] && a < b); }

  void load(const Real* input, std::array<std::int64_t, 3> shape, const Reading& reading) {
    // The outer layer of the margin is NaN: every comparison with it is false, so it never comes before
    // anything.
    const Real nan = std::numeric_limits<Real>::quiet_NaN(), shell = std::numeric_limits<Real>::infinity();
    grid = Grid(shape, reading.dual ? 2 : 1);
    values.assign(grid.size(), nan);
    if (reading.dual)
      for (std::int64_t x = -1; x <= shape[0]; ++x)
        for (std::int64_t y = -1; y <= shape[1]; ++y) {
          Real* row = values.data() + grid.row(x, y);
          const bool inside = x >= 0 && x < shape[0] && y >= 0 && y < shape[1];
          row[-1] = row[shape[2]] = shell;
          if (!inside) std::fill(row, row + shape[2], shell);
        }
    Lane finite = 1, in_range = 1;
    const Real delta = static_cast<Real>(reading.clamp), sign = reading.dual ? Real(-1) : Real(1);
    for (std::int64_t x = 0; x < shape[0]; ++x)
      for (std::int64_t y = 0; y < shape[1]; ++y, input += shape[2]) {
        Real* row = values.data() + grid.row(x, y);
        if (reading.clamp > 0) {
          for (std::int64_t z = 0; z < shape[2]; ++z) {
            const Real value = input[z];
            finite &= Lane(value - value == 0);
            in_range &= Lane(value >= -delta) & Lane(value <= 1 + delta);
            row[z] = sign * (value < delta ? Real(0) : value > 1 - delta ? Real(1) : value) + Real(0);
          }
        } else {
          for (std::int64_t z = 0; z < shape[2]; ++z) {
            finite &= Lane(input[z] - input[z] == 0);
            row[z] = sign * input[z] + Real(0);  // + 0 makes -0.0 the same bits as 0.0
          }
        }
      }
    if (!finite) throw NotFinite();
    if (!in_range) throw OutOfRange();
  }

  // The volume's first voxel: its maximum, the first of several.
  Voxel first() const {
    Voxel best = grid.row(0, 0);
    for (std::int64_t x = 0; x < grid.shape[0]; ++x)
      for (std::int64_t y = 0; y < grid.shape[1]; ++y)
        for (std::int64_t z = 0; z < grid.shape[2]; ++z)
          if (values[grid.row(x, y) + z] > values[best]) best = grid.row(x, y) + static_cast<Voxel>(z);
    return best;
  }

  // The volume's last voxel: its minimum, the last of several.
  Voxel last() const {
    const std::int64_t length = grid.shape[2];
    Voxel best = grid.row(grid.shape[0] - 1, grid.shape[1] - 1) + static_cast<Voxel>(length - 1);
    for (std::int64_t x = grid.shape[0]; x-- > 0;)
      for (std::int64_t y = grid.shape[1]; y-- > 0;) {
        const Real *row = values.data() + grid.row(x, y), lowest = values[best];
        Lane lower = 0;  // first whether there is any in the row, which is quick
        for (std::int64_t z = 0; z < length; ++z) lower |= Lane(row[z] < lowest);
        for (std::int64_t z = length; lower && z-- > 0;)
          if (row[z] < values[best]) best = grid.row(x, y) + static_cast<Voxel>(z);
      }
    return best;
  }
};

// A value's bits as an unsigned integer that grows as the value falls: the filtration's order for radix sort
// and heaps. -0.0 must have been made 0.0.
inline std::uint32_t descending_bits(float value) {
  std::uint32_t bits;
  std::memcpy(&bits, &value, sizeof bits);
  return bits >> 31 ? bits : ~(bits | 0x80000000u);
}

inline std::uint64_t descending_bits(double value) {
  std::uint64_t bits;
  std::memcpy(&bits, &value, sizeof bits);
  return bits >> 63 ? bits : ~(bits | 0x8000000000000000ull);
}

}  // namespace homology
