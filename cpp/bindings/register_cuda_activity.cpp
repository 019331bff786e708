#include <pybind11/pybind11.h>
#include <pybind11/stl.h>
#include <pybind11/typing.h>

#include <map>
#include <string>
#include <tuple>
#include <vector>

#include "bindings/register.hpp"
#include "cuda/activity/call_recorder.hpp"

namespace py = pybind11;
using namespace fairlap;

namespace {

// Name, stream, start and length.
using ActivityRow = std::tuple<std::string, std::uint32_t, std::uint64_t, std::uint64_t>;

std::vector<ActivityRow> rows_of(const cuda::RecordedCall& call) {
  std::map<const std::string*, std::string> known;  // a kernel runs many times, and its name is kept once
  std::vector<ActivityRow> rows;
  for (const cuda::Activity& activity : call.activities) {
    std::string name;
    if (activity.kind == cuda::ActivityKind::kernel) {
      const auto [found, is_new] = known.try_emplace(activity.name);
      if (is_new) found->second = cuda::readable_name(activity);
      name = found->second;
    } else {
      name = cuda::readable_name(activity);
    }
    rows.emplace_back(name, activity.stream, activity.start_ns, activity.end_ns - activity.start_ns);
  }
  return rows;
}

std::vector<cuda::RecordedCall> recorded_calls(const py::typing::Callable<py::object()>& call,
                                               std::size_t calls, int device,
                                               const std::vector<std::string>& cupti_places) {
  cuda::CallRecorder recorder(cuda::Driver::of_this_process(), cuda::Cupti::of_this_process(cupti_places),
                              device);
  std::vector<cuda::RecordedCall> found;
  found.reserve(calls);
  for (std::size_t number = 0; number < calls; ++number) {
    recorder.begin();
    const py::object result = call();
    const py::gil_scoped_release no_lock;  // A framework may launch from its own threads after the call.
    found.push_back(recorder.end());
  }
  return found;
}

}  // namespace

void register_cuda_activity(py::module_& module) {
  py::class_<cuda::RecordedCall>(module, "RecordedCall", "What a device did during one call.")
      .def_readonly("begin_ns", &cuda::RecordedCall::begin_ns)
      .def_readonly("end_ns", &cuda::RecordedCall::end_ns)
      .def_readonly("is_complete", &cuda::RecordedCall::is_complete)
      .def_property_readonly("activities", &rows_of, "Name, stream, start and length of each, by start.");
  module.def("recorded_calls", &recorded_calls, py::arg("call"), py::kw_only(), py::arg("calls"),
             py::arg("device"), py::arg("cupti_places"),
             "The device's own records of each of so many calls. Holds CUPTI meanwhile.");
}
