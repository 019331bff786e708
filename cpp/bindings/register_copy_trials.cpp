#include <pybind11/native_enum.h>
#include <pybind11/pybind11.h>
#include <pybind11/stl.h>

#include <memory>

#include "bindings/register.hpp"
#include "cuda_link/copy_trials.hpp"

namespace py = pybind11;
using namespace fairlap;

void register_copy_trials(py::module_& module) {
  using cuda_link::CopyTrials;
  using cuda_link::CopyWay;
  py::native_enum<CopyWay>(module, "CopyWay", "enum.Enum",
                           "Which way copies go between a device and its host.")
      .value("to_device", CopyWay::to_device)
      .value("from_device", CopyWay::from_device)
      .value("both", CopyWay::both)
      .finalize();
  py::class_<CopyTrials>(module, "CopyTrials", "Trials of copies between two memories.")
      .def_property_readonly("is_direct", &CopyTrials::is_direct,
                             "Whether two devices read each other's memory; else it goes through the host's.")
      .def("rates", &CopyTrials::rates, py::arg("seconds"), py::call_guard<py::gil_scoped_release>(),
           "The bytes per second of each trial, of both directions together where there are two.");
  module.def(
      "copy_trials",
      [](const cuda::OwnStream& stream, CopyWay way) { return std::make_unique<CopyTrials>(stream, way); },
      py::keep_alive<0, 1>(), py::arg("stream"), py::arg("way"), py::call_guard<py::gil_scoped_release>());
  module.def(
      "peer_copy_trials",
      [](const cuda::OwnStream& source, const cuda::OwnStream& target) {
        return std::make_unique<CopyTrials>(source, target);
      },
      py::keep_alive<0, 1>(), py::keep_alive<0, 2>(), py::arg("source"), py::arg("target"),
      py::call_guard<py::gil_scoped_release>());
}
