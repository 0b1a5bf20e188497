// The face to Python: arrays in, arrays out, the GIL released in between.
#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>
#include <nanobind/stl/array.h>
#include <nanobind/stl/vector.h>

#include "batch.hpp"
#include "mesh.hpp"
#include "mesh_crossings.hpp"
#include "mesh_winding.hpp"
#include "persistence.hpp"
#include "stencil_floor.hpp"

namespace nb = nanobind;
using namespace homology;

namespace {

template <class Real>
using Volume = nb::ndarray<const Real, nb::ndim<3>, nb::c_contig, nb::device::cpu>;

template <class Real>
Pool<Workspace<Real>>& pool() {
  static Pool<Workspace<Real>> spaces;
  return spaces;
}

// A NumPy array that owns memory filled by fill(data, count).
template <class T, class Fill>
nb::object make_array(std::size_t count, Fill fill) {
  auto data = std::make_unique<T[]>(count);
  fill(data.get());
  T* const raw = data.release();
  nb::capsule owner(raw, [](void* p) noexcept { delete[] static_cast<T*>(p); });
  return nb::cast(nb::ndarray<nb::numpy, T, nb::ndim<1>>(raw, {count}, owner));
}

template <class T, class Real, class Get>
nb::object column(const std::vector<std::vector<Feature<Real>>>& diagrams, std::size_t total, Get get) {
  return make_array<T>(total, [&](T* out) {
    for (const auto& diagram : diagrams)
      for (const auto& feature : diagram) *out++ = get(feature);
  });
}

// True if Python has a pending signal whose handler raised; the exception then waits to be picked up.
bool python_interrupted() {
  const nb::gil_scoped_acquire gil;
  return PyErr_CheckSignals() != 0;
}

template <class Real>
nb::tuple persistence(const std::vector<Volume<Real>>& volumes, int dims, bool dual, double min_persistence,
                      double clamp, std::int64_t top, std::size_t threads) {
  Options options;
  for (int dim = 0; dim < 3; ++dim) options.dims[dim] = dims >> dim & 1;
  options.reading = {dual, clamp};
  options.min_persistence = min_persistence;
  options.top = top;
  std::vector<std::vector<Feature<Real>>> diagrams(volumes.size());
  try {
    const nb::gil_scoped_release release;
    const auto work = [&](std::size_t item, const Poll& poll) {
      const Volume<Real>& volume = volumes[item];
      auto space = pool<Real>().take();
      space->run(volume.data(),
                 {static_cast<std::int64_t>(volume.shape(0)), static_cast<std::int64_t>(volume.shape(1)),
                  static_cast<std::int64_t>(volume.shape(2))},
                 options, poll, diagrams[item]);
      pool<Real>().give(std::move(space));
    };
    Batch(volumes.size(), work, python_interrupted).run(threads);
  } catch (const Interrupted&) {
    throw nb::python_error();
  } catch (const NotFinite& error) {
    throw nb::value_error(error.what());
  } catch (const OutOfRange& error) {
    throw nb::value_error(error.what());
  } catch (const std::length_error& error) {
    throw nb::value_error(error.what());
  }
  std::size_t total = 0;
  for (const auto& diagram : diagrams) total += diagram.size();
  using F = Feature<Real>;
  return nb::make_tuple(
      make_array<std::int64_t>(diagrams.size(),
                               [&](std::int64_t* out) {
                                 for (const auto& diagram : diagrams)
                                   *out++ = static_cast<std::int64_t>(diagram.size());
                               }),
      column<std::int8_t, Real>(diagrams, total, [](const F& f) { return static_cast<std::int8_t>(f.dim); }),
      column<Real, Real>(diagrams, total, [](const F& f) { return f.birth; }),
      column<Real, Real>(diagrams, total, [](const F& f) { return f.death; }),
      column<std::int64_t, Real>(diagrams, total, [](const F& f) { return f.birth_voxel; }),
      column<std::int64_t, Real>(diagrams, total, [](const F& f) { return f.death_voxel; }),
      column<bool, Real>(diagrams, total, [](const F& f) { return f.essential; }));
}

nb::object neighbour_masks_of(const Volume<float>& volume) {
  Field<float> field;
  field.load(volume.data(),
             {static_cast<std::int64_t>(volume.shape(0)), static_cast<std::int64_t>(volume.shape(1)),
              static_cast<std::int64_t>(volume.shape(2))},
             Reading{});
  const std::vector<std::uint32_t> masks = neighbour_masks(field);
  return make_array<std::uint32_t>(masks.size(),
                                   [&](std::uint32_t* out) { std::copy(masks.begin(), masks.end(), out); });
}

using Points = nb::ndarray<const float, nb::shape<-1, 3>, nb::c_contig, nb::device::cpu>;

std::vector<meshing::Point> from_points(const Points& points, std::size_t count) {
  if (points.shape(0) != count) throw nb::value_error("one point for each vertex is needed");
  std::vector<meshing::Point> out(count);
  for (std::size_t v = 0; v < count; ++v)
    for (int axis = 0; axis < 3; ++axis) out[v][axis] = points(v, axis);
  return out;
}

// The rows of equal arrays as one NumPy array with two axes.
template <class T, std::size_t kWidth, class Rows, class Get>
nb::object make_rows(const Rows& rows, Get get) {
  const std::size_t count = rows.size();
  auto data = std::make_unique<T[]>(count * kWidth);
  for (std::size_t r = 0; r < count; ++r)
    for (std::size_t c = 0; c < kWidth; ++c) data[r * kWidth + c] = static_cast<T>(get(rows[r])[c]);
  T* const raw = data.release();
  nb::capsule owner(raw, [](void* p) noexcept { delete[] static_cast<T*>(p); });
  return nb::cast(nb::ndarray<nb::numpy, T, nb::ndim<2>>(raw, {count, kWidth}, owner));
}

template <class T, std::size_t kWidth, class Row>
nb::object make_rows(const std::vector<Row>& rows) {
  return make_rows<T, kWidth>(rows, [](const Row& row) -> const Row& { return row; });
}

nb::tuple triangulate(const meshing::Mesher& mesher, const Points& points, std::array<double, 3> spacing,
                      int rounds) {
  using meshing::Triangle;
  auto x = from_points(points, mesher.complex.start.size());
  std::vector<std::int32_t> tangled;
  const meshing::Triangulation made = [&] {
    const nb::gil_scoped_release release;
    auto triangulation = mesher.triangulate(std::move(x), spacing, rounds);
    tangled = mesher.tangled(triangulation);
    return triangulation;
  }();
  const auto& triangles = made.faces.triangles;
  return nb::make_tuple(
      make_rows<float, 3>(made.points),
      make_rows<std::int32_t, 3>(triangles, [](const Triangle& t) { return t.corners; }),
      make_rows<std::uint8_t, 2>(triangles, [](const Triangle& t) { return std::array{t.below, t.above}; }),
      make_array<std::int8_t>(triangles.size(),
                              [&](std::int8_t* out) { std::copy(made.axis.begin(), made.axis.end(), out); }),
      tangled);
}

using Places = nb::ndarray<const double, nb::shape<-1, 3>, nb::c_contig, nb::device::cpu>;
using Corners = nb::ndarray<const std::int32_t, nb::shape<-1, 3>, nb::c_contig, nb::device::cpu>;
using Sides = nb::ndarray<const std::uint8_t, nb::shape<-1, 2>, nb::c_contig, nb::device::cpu>;

void check_corners(const Corners& triangles, std::size_t count) {
  for (std::size_t t = 0; t < triangles.shape(0); ++t)
    for (int n = 0; n < 3; ++n)
      if (triangles(t, n) < 0 || static_cast<std::size_t>(triangles(t, n)) >= count)
        throw nb::value_error("a triangle has a corner that is no point");
}

nb::object crossings(const Places& points, const Corners& triangles) {
  const std::size_t count = points.shape(0);
  check_corners(triangles, count);
  std::vector<std::pair<std::int32_t, std::int32_t>> pairs;
  try {
    const nb::gil_scoped_release release;
    pairs = meshing::Crossings(points.data(), count, triangles.data(), triangles.shape(0)).find();
  } catch (const std::out_of_range& error) {
    throw nb::value_error(error.what());
  }
  return make_rows<std::int32_t, 2>(pairs, [](const auto& p) { return std::array{p.first, p.second}; });
}

nb::object labels_at(const Places& at, const Places& points, const Corners& triangles, const Sides& sides) {
  check_corners(triangles, points.shape(0));
  if (sides.shape(0) != triangles.shape(0)) throw nb::value_error("every triangle needs two sides");
  return make_array<std::int16_t>(at.shape(0), [&](std::int16_t* out) {
    const nb::gil_scoped_release release;
    const meshing::Winding winding(points.data(), points.shape(0), triangles.data(), sides.data(),
                                   triangles.shape(0));
    for (std::size_t i = 0; i < at.shape(0); ++i)
      out[i] = static_cast<std::int16_t>(winding.label_at(at.data() + 3 * i));
  });
}

}  // namespace

NB_MODULE(_kernel, m) {
  m.doc() = "Persistent homology of cubical volumes; use anatomica.measurement.homology.";
  m.attr("sources") = ANATOMICA_KERNEL_HASH;
  m.def("persistence", &persistence<float>, nb::arg("volumes").noconvert(), nb::arg("dims"), nb::arg("dual"),
        nb::arg("min_persistence"), nb::arg("clamp"), nb::arg("top"), nb::arg("threads"));
  m.def("persistence", &persistence<double>, nb::arg("volumes").noconvert(), nb::arg("dims"), nb::arg("dual"),
        nb::arg("min_persistence"), nb::arg("clamp"), nb::arg("top"), nb::arg("threads"));
  m.def("neighbour_masks", &neighbour_masks_of, nb::arg("volume").noconvert());
  using meshing::Mesher;
  nb::class_<Mesher>(m, "Mesher")
      .def(
          "__init__",
          [](Mesher* self, const Volume<std::uint8_t>& volume, const std::vector<std::int32_t>& pinned) {
            const std::array<std::int64_t, 3> shape{static_cast<std::int64_t>(volume.shape(0)),
                                                    static_cast<std::int64_t>(volume.shape(1)),
                                                    static_cast<std::int64_t>(volume.shape(2))};
            const nb::gil_scoped_release release;
            new (self) Mesher(volume.data(), shape, pinned);
          },
          nb::arg("labels").noconvert(), nb::arg("pinned"))
      .def_prop_ro("start", [](const Mesher& mesher) { return make_rows<float, 3>(mesher.complex.start); })
      .def_prop_ro("low", [](const Mesher& mesher) { return make_rows<float, 3>(mesher.complex.low); })
      .def_prop_ro("high", [](const Mesher& mesher) { return make_rows<float, 3>(mesher.complex.high); })
      .def_prop_ro("labels",
                   [](const Mesher& mesher) { return make_rows<std::uint8_t, 8>(mesher.complex.labels); })
      .def(
          "relax",
          [](Mesher& mesher, const Points& points, int rounds, int every) {
            auto x = from_points(points, mesher.complex.start.size());
            {
              const nb::gil_scoped_release release;
              mesher.relax(x, rounds, every);
            }
            return make_rows<float, 3>(x);
          },
          nb::arg("points"), nb::arg("rounds"), nb::arg("every"))
      .def("triangulate", &triangulate, nb::arg("points"), nb::arg("spacing"), nb::arg("rounds"));
  m.def("crossings", &crossings, nb::arg("points").noconvert(), nb::arg("triangles").noconvert());
  m.def("labels_at", &labels_at, nb::arg("at").noconvert(), nb::arg("points").noconvert(),
        nb::arg("triangles").noconvert(), nb::arg("sides").noconvert());
  m.def("release_scratch", [] { pool<float>().clear(), pool<double>().clear(); });
}
