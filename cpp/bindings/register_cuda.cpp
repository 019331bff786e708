#include <pybind11/pybind11.h>
#include <pybind11/stl.h>
#include <pybind11/typing.h>

#include <cmath>
#include <memory>
#include <string>

#include "bindings/collector_pause.hpp"
#include "bindings/native_work.hpp"
#include "bindings/one_at_a_time.hpp"
#include "bindings/python_work.hpp"
#include "bindings/register.hpp"
#include "bindings/register_cuda_record.hpp"
#include "cuda/device/device_identity.hpp"
#include "cuda/device/device_report.hpp"
#include "cuda/driver/device_code.hpp"
#include "cuda/sampling/cache_flush.hpp"
#include "cuda/sampling/graph_replay.hpp"
#include "cuda/stream/stream_run.hpp"

namespace py = pybind11;
using namespace fairlap;
using bindings::NativeWork;
using bindings::PythonWork;

namespace {

using Described = py::typing::Dict<py::str, py::object>;

loop::Work* work_in(const py::handle& call) {
  if (py::isinstance<NativeWork>(call)) return &call.cast<NativeWork&>();
  return &call.cast<PythonWork&>();
}

py::object exception_of(const py::handle& call) {
  if (py::isinstance<NativeWork>(call)) return call.cast<NativeWork&>().exception();
  return call.cast<PythonWork&>().exception();
}

bindings::StreamRecordView time_on_stream(
    const py::typing::List<py::object>& calls, std::optional<std::uintptr_t> stream, int device,
    const clock::Clock& on_clock, cuda::Method method, std::size_t samples, double seconds, double target,
    std::uint64_t calls_per_sample, double quantum_share, loop::WarmUpKind warm_up,
    std::uint64_t warm_up_calls, bool flush, std::optional<cuda::GateKind> gate, bool graph, bool guard,
    double timeout_s, double gate_timeout_s, const std::vector<std::string>& cupti_places,
    bool pause_collector) {
  const cuda::StreamSettings settings{
      .method = method,
      .stop = {.samples = samples, .seconds = seconds, .target_half_width = target},
      .calls_per_sample = calls_per_sample,
      .quantum_share = quantum_share,
      .warm_up = warm_up,
      .warm_up_calls = warm_up_calls,
      .flush = flush,
      .gate = gate,
      .graph = graph,
      .guard = guard,
      .timeout_s = timeout_s,
      .gate_timeout_s = gate_timeout_s,
      .cupti_places = cupti_places};
  std::vector<loop::Work*> works;
  for (const py::handle call : calls) works.push_back(work_in(call));
  if (works.empty()) throw std::invalid_argument("there is nothing to time");

  const bindings::OneAtATime one_at_a_time;
  const bindings::CollectorPause pause(pause_collector);
  bindings::StreamRecordView view;
  {
    const py::gil_scoped_release no_lock;
    view.record =
        cuda::time_on_stream(cuda::Driver::of_this_process(), stream, device, works, on_clock, settings);
  }
  for (const py::handle call : calls) {
    if (py::object raised = exception_of(call); !raised.is_none()) view.exception = std::move(raised);
  }
  const bool interrupted =
      !view.exception.is_none() && py::isinstance(view.exception, PyExc_KeyboardInterrupt);
  if (interrupted) view.record->stopped_by = loop::StopReason::interrupt;
  if (!interrupted && !view.exception.is_none()) view.record->stopped_by = loop::StopReason::raised;
  return view;
}

std::vector<Described> devices(const clock::Clock& on_clock) {
  std::vector<cuda::DeviceReport> reports;
  int driver_version = 0;
  {
    const py::gil_scoped_release no_lock;
    const cuda::Driver& driver = cuda::Driver::of_this_process();
    driver_version = driver.version();
    reports = cuda::report_devices(driver, on_clock);
  }
  std::vector<Described> out;
  for (const cuda::DeviceReport& report : reports) {
    Described device;
    device["device"] = report.index;
    device["name"] = report.name;
    device["pci_bus_id"] = report.pci_bus_id;
    device["compute_capability"] =
        std::to_string(report.capability_major) + "." + std::to_string(report.capability_minor);
    device["l2_bytes"] = report.cache_bytes;
    device["driver_cuda_version"] = driver_version;
    device["gate"] = py::cast(report.gate).attr("name");
    device["gate_because"] = report.gate_because;
    device["context_events_absent"] = report.context_events_absent_because;
    device["floor_absent"] = report.floor_absent_because;
    device["floor"] = bindings::figures_of(report.floor);
    out.push_back(device);
  }
  return out;
}

}  // namespace

void register_cuda(py::module_& module) {
  py::register_exception<cuda::CudaError>(module, "CudaError", PyExc_RuntimeError);
  py::register_exception<cuda::Unavailable>(module, "CudaUnavailable", PyExc_RuntimeError);
  py::register_exception<cuda::BadStream>(module, "BadStream", PyExc_ValueError);
  py::register_exception<cuda::CaptureFailed>(module, "CaptureFailed", PyExc_RuntimeError);
  bindings::register_cuda_record(module);
  module.def("cuda_absent_because", &cuda::Driver::absent_because,
             "Why there is no CUDA here; empty when there is.");
  module.def(
      "cuda_device_code", [] { return cuda::kDeviceCode; },
      "The embedded device code, for tests that need work of known length.");
  module.def(
      "cuda_driver_version", [] { return cuda::Driver::of_this_process().version(); },
      "The newest CUDA release the driver knows, 1000 * major + 10 * minor.");
  module.def("cuda_devices", &devices, py::arg("clock"));
  module.def(
      "cuda_device_identities",
      [] {
        std::vector<std::pair<std::string, std::string>> found;
        const py::gil_scoped_release no_lock;
        for (const cuda::DeviceIdentity& each : cuda::identify_devices(cuda::Driver::of_this_process()))
          found.emplace_back(each.pci_bus_id, each.uuid);
        return found;
      },
      "The PCI address and the UUID of each device, in CUDA's order. Starts the driver and no device.");
  module.def(
      "stream_cache_bytes",
      [](std::optional<std::uintptr_t> stream, int device) {
        const py::gil_scoped_release no_lock;
        const cuda::Driver& driver = cuda::Driver::of_this_process();
        const auto borrowed = cuda::BorrowedStream::borrow(driver, stream, device);
        return cuda::device_attribute(driver, borrowed.context().device(),
                                      cuda::CU_DEVICE_ATTRIBUTE_L2_CACHE_SIZE);
      },
      py::arg("stream").none(true), py::arg("device"),
      "The L2 cache of the device that a stream is of; 0 where the driver does not report it.");
  module.def("time_on_stream", &time_on_stream, py::arg("calls"), py::arg("stream").none(true),
             py::arg("device"), py::arg("clock"), py::kw_only(), py::arg("method"), py::arg("samples"),
             py::arg("seconds"), py::arg("target"), py::arg("calls_per_sample"), py::arg("quantum_share"),
             py::arg("warm_up"), py::arg("warm_up_calls"), py::arg("flush"), py::arg("gate").none(true),
             py::arg("graph"), py::arg("guard"), py::arg("timeout_s"), py::arg("gate_timeout_s"),
             py::arg("cupti_places"), py::arg("pause_collector"));
}
