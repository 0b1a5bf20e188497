// The face to Python: arrays in, arrays out, the GIL released in between.
#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>
#include <nanobind/stl/vector.h>

#include "batch.hpp"
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

}  // namespace

NB_MODULE(_kernel, m) {
  m.doc() = "Persistent homology of cubical volumes; use anatomica.measurement.homology.";
  m.attr("sources") = ANATOMICA_KERNEL_HASH;
  m.def("persistence", &persistence<float>, nb::arg("volumes").noconvert(), nb::arg("dims"), nb::arg("dual"),
        nb::arg("min_persistence"), nb::arg("clamp"), nb::arg("top"), nb::arg("threads"));
  m.def("persistence", &persistence<double>, nb::arg("volumes").noconvert(), nb::arg("dims"), nb::arg("dual"),
        nb::arg("min_persistence"), nb::arg("clamp"), nb::arg("top"), nb::arg("threads"));
  m.def("neighbour_masks", &neighbour_masks_of, nb::arg("volume").noconvert());
  m.def("release_scratch", [] { pool<float>().clear(), pool<double>().clear(); });
}
