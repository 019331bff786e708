#include <pybind11/pybind11.h>

#include <string>

#include "bindings/register.hpp"
#include "clock/clock.hpp"

namespace py = pybind11;
using fairlap::clock::Clock;
using fairlap::clock::CrossCheck;

void register_clock(py::module_& module) {
  py::register_exception<fairlap::clock::SourceUnavailable>(module, "ClockSourceUnavailable",
                                                            PyExc_RuntimeError);

  py::class_<CrossCheck>(module, "ClockCheck",
                         "The clock compared with the operating system's over a stretch of use.")
      .def_readonly("elapsed_s", &CrossCheck::elapsed_s)
      .def_readonly("drift_ppm", &CrossCheck::drift_ppm)
      .def_readonly("resolution_ppm", &CrossCheck::resolution_ppm);

  py::class_<Clock, std::unique_ptr<Clock, py::nodelete>>(module, "Clock",
                                                          "A calibrated clock with a known floor.")
      .def_property_readonly(
          "source", [](const Clock& clock) { return std::string(fairlap::clock::name_of(clock.source())); })
      .def_property_readonly("quantum_ns", [](const Clock& clock) { return clock.floor().quantum_ns; })
      .def_property_readonly("overhead_ns", [](const Clock& clock) { return clock.floor().overhead_ns; })
      .def_property_readonly("bias_ns", [](const Clock& clock) { return clock.floor().bias_ns; })
      .def_property_readonly("ns_per_tick",
                             [](const Clock& clock) { return clock.calibration().ns_per_tick; })
      .def_property_readonly("calibration_uncertainty_ppm",
                             [](const Clock& clock) { return clock.calibration().uncertainty_ppm; })
      .def_property_readonly("trusted",
                             [](const Clock& clock) {
                               return clock.source() == fairlap::clock::Source::monotonic_raw ||
                                      clock.trust().trusted;
                             })
      .def_property_readonly("counter_distrust", [](const Clock& clock) { return clock.trust().reason; })
      .def("check_drift", [](const Clock& clock) { return clock.drift_since_calibration(); });

  module.def(
      "clock",
      [](const std::string& source) -> const Clock& {
        const py::gil_scoped_release no_lock;  // The first use calibrates for tens of milliseconds.
        return source == "auto" ? Clock::best() : Clock::named(source);
      },
      py::arg("source") = "auto", py::return_value_policy::reference);
  module.def("under_hypervisor", &fairlap::clock::under_hypervisor);
  module.def("kernel_clock_source", &fairlap::clock::kernel_clock_source);
}
