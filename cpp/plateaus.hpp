// The plateaus that clamping makes, and the voxel of each that is extreme in the values before clamping.
#pragma once

#include <algorithm>
#include <cstdint>
#include <vector>

#include "field.hpp"
#include "pairs.hpp"

namespace homology {

// Connected components of the voxels clamped to one value, found by runs along rows. The plateau of the early
// value is foreground, joined through faces; that of the late value is background, joined through corners as
// well.
template <class Real>
class Plateau {
 public:
  void find(const Field<Real>& field, const Real* input, Real value, Real sign, bool early) {
    grid_ = field.grid;
    early_ = early;
    runs_.clear();
    first_.clear();
    for (std::int64_t x = 0; x < grid_.shape[0]; ++x)
      for (std::int64_t y = 0; y < grid_.shape[1]; ++y, input += grid_.shape[2]) {
        first_.push_back(runs_.size());
        cut(field.values.data() + grid_.row(x, y), input, grid_.row(x, y), value, sign);
      }
    first_.push_back(runs_.size());
    forest_.reset(runs_.size());
    for (std::int64_t x = 0; x < grid_.shape[0]; ++x)
      for (std::int64_t y = 0; y < grid_.shape[1]; ++y) {
        if (y > 0) join(x, y, x, y - 1);
        if (x > 0) join(x, y, x - 1, y);
        if (x > 0 && y > 0 && !early) join(x, y, x - 1, y - 1);
        if (x > 0 && y + 1 < grid_.shape[1] && !early) join(x, y, x - 1, y + 1);
      }
  }

  // The extreme voxel of the component that this voxel of the plateau is in.
  Voxel extreme(Voxel voxel) {
    const std::int64_t row = voxel / grid_.padded[2];
    const std::size_t at = line(row / grid_.padded[1] - grid_.margin, row % grid_.padded[1] - grid_.margin);
    const auto after = std::upper_bound(runs_.begin() + first_[at], runs_.begin() + first_[at + 1], voxel,
                                        [](Voxel value, const Run& run) { return value < run.begin; });
    return runs_[forest_.root(static_cast<std::int32_t>(after - runs_.begin() - 1))].extreme;
  }

 private:
  struct Run {
    Voxel begin, end, extreme;
    Real value;  // of the extreme, before clamping
  };

  std::size_t line(std::int64_t x, std::int64_t y) const {
    return static_cast<std::size_t>(x * grid_.shape[1] + y);
  }

  // The earliest voxel of the early plateau, the latest of the late one.
  bool beats(Real value, Voxel voxel, const Run& run) const {
    if (value != run.value) return early_ ? value > run.value : value < run.value;
    return early_ ? voxel < run.extreme : voxel > run.extreme;
  }

  void cut(const Real* clamped, const Real* input, Voxel start, Real plateau, Real sign) {
    const Voxel length = static_cast<Voxel>(grid_.shape[2]);
    for (Voxel z = 0; z < length; ++z) {
      if (clamped[z] != plateau) continue;
      Run run{start + z, start + z, start + z, sign * input[z]};
      for (; z < length && clamped[z] == plateau; ++z)
        if (beats(sign * input[z], start + z, run)) run.extreme = start + z, run.value = sign * input[z];
      run.end = start + z;
      runs_.push_back(run);
    }
  }

  // Join the runs of two rows that touch. Runs of one row lie at least a voxel apart, so of two runs the one
  // that ends first touches nothing further along.
  void join(std::int64_t x, std::int64_t y, std::int64_t other_x, std::int64_t other_y) {
    const Voxel shift = grid_.row(x, y) - grid_.row(other_x, other_y), reach = early_ ? 0 : 1;
    std::size_t a = first_[line(x, y)], b = first_[line(other_x, other_y)];
    const std::size_t a_end = first_[line(x, y) + 1], b_end = first_[line(other_x, other_y) + 1];
    while (a < a_end && b < b_end) {
      const Voxel begin = runs_[b].begin + shift, end = runs_[b].end + shift;
      if (runs_[a].begin < end + reach && begin < runs_[a].end + reach) unite(a, b);
      if (runs_[a].end < end)
        ++a;
      else
        ++b;
    }
  }

  void unite(std::size_t a, std::size_t b) {
    std::int32_t one = forest_.root(static_cast<std::int32_t>(a)),
                 two = forest_.root(static_cast<std::int32_t>(b));
    if (one == two) return;
    if (beats(runs_[two].value, runs_[two].extreme, runs_[one])) std::swap(one, two);
    forest_.hang(two, one);
  }

  Grid grid_;
  bool early_ = true;
  std::vector<Run> runs_;
  std::vector<std::size_t> first_;  // row -> its first run
  Forest forest_;
};

// Births and deaths inside a plateau are reported at its extreme voxel.
template <class Real>
class Plateaus {
 public:
  void find(const Field<Real>& field, const Real* input, bool dual) {
    early_value_ = dual ? Real(0) : Real(1), late_value_ = dual ? Real(-1) : Real(0);
    const Real sign = dual ? Real(-1) : Real(1);
    early_.find(field, input, early_value_, sign, true);
    late_.find(field, input, late_value_, sign, false);
  }

  // Where to report a voxel, given its value after clamping.
  Voxel extreme(Voxel voxel, Real value) {
    if (value == early_value_) return early_.extreme(voxel);
    return value == late_value_ ? late_.extreme(voxel) : voxel;
  }

 private:
  Plateau<Real> early_, late_;
  Real early_value_{}, late_value_{};
};

}  // namespace homology
