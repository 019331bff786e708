#include <pybind11/pybind11.h>
#include <pybind11/stl.h>

#include <cstdint>
#include <utility>

#include "clock/clock.hpp"
#include "cuda/borrowed_stream.hpp"
#include "telemetry/event_timeline.hpp"
#include "telemetry/recorder.hpp"

namespace py = pybind11;
using namespace fairlap;

namespace {

// The timeline refers to the context, so both live in one place that does not move.
struct OfDevice {
  OfDevice(const clock::Clock& on_clock, int device)
      : context(cuda::BorrowedContext::of_device(cuda::Driver::of_this_process(), device)),
        timeline(context, [&on_clock] { return telemetry::engine_now_ns(on_clock); }) {}

  cuda::BorrowedContext context;
  telemetry::EventTimeline timeline;
};

}  // namespace

void register_event_timeline(py::module_& module) {
  py::class_<OfDevice>(module, "EventTimeline", "Where the events of a device lie on the sampler's clock.")
      .def(py::init<const clock::Clock&, int>(), py::arg("clock"), py::arg("device"), py::keep_alive<1, 2>(),
           py::call_guard<py::gil_scoped_release>())
      .def(
          "anchor", [](OfDevice& own) { own.timeline.anchor(); }, py::call_guard<py::gil_scoped_release>())
      .def(
          "anchor_if_older",
          [](OfDevice& own, double seconds) {
            return own.timeline.anchor_if_older(static_cast<std::int64_t>(seconds * 1e9));
          },
          py::arg("seconds"), py::call_guard<py::gil_scoped_release>())
      .def(
          "time_of",
          [](const OfDevice& own, std::uintptr_t event) {
            const telemetry::AlignedTime time = own.timeline.time_of(reinterpret_cast<cuda::CUevent>(event));
            return std::make_pair(time.time_ns, time.uncertainty_ns);
          },
          py::arg("event"), py::call_guard<py::gil_scoped_release>())
      .def_property_readonly("drift_ppm",
                             [](const OfDevice& own) {
                               const telemetry::ClockDrift drift = own.timeline.drift();
                               return std::make_pair(drift.ppm, drift.uncertainty_ppm);
                             })
      .def_property_readonly("anchors", [](const OfDevice& own) { return own.timeline.anchors(); });
}
