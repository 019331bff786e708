#include "bindings/register_cuda_record.hpp"

#include <pybind11/native_enum.h>
#include <pybind11/stl.h>

#include <cmath>
#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "bindings/samples.hpp"

namespace py = pybind11;

namespace fairlap::bindings {
namespace {

using CountAndTotal = std::pair<std::size_t, double>;
using ActivityRow = std::tuple<cuda::ActivityKind, std::string, std::uint32_t, std::uint64_t, std::uint64_t>;

std::map<cuda::Quantity, Samples> columns(const StreamRecordView& self) {
  std::map<cuda::Quantity, Samples> out;
  for (std::size_t index = 0; index < cuda::kQuantities; ++index) {
    const auto quantity = static_cast<cuda::Quantity>(index);
    if (!self.record->table->has(quantity)) continue;
    out[quantity] = Samples{self.record, self.record->table->column(quantity)};
  }
  return out;
}

std::map<cuda::Invalid, std::size_t> invalid(const StreamRecordView& self) {
  std::map<cuda::Invalid, std::size_t> out;
  for (std::size_t index = 0; index < cuda::kInvalidReasons; ++index) {
    const auto reason = static_cast<cuda::Invalid>(index);
    if (const std::size_t count = self.record->table->count(reason); count > 0) out[reason] = count;
  }
  return out;
}

std::map<std::string, CountAndTotal> kernels(const StreamRecordView& self) {
  std::map<std::string, CountAndTotal> out;
  for (const auto& [name, tally] : self.record->trace.kernels) out[name] = {tally.count, tally.total_ns};
  return out;
}

std::map<std::uint32_t, CountAndTotal> streams(const StreamRecordView& self) {
  std::map<std::uint32_t, CountAndTotal> out;
  for (const auto& [id, tally] : self.record->trace.streams) out[id] = {tally.count, tally.total_ns};
  return out;
}

// Kind, name, stream, start and end of everything in the last sample, from its first start on.
std::vector<ActivityRow> last_sample(const StreamRecordView& self) {
  const auto& activities = self.record->trace.last_sample;
  std::vector<ActivityRow> out;
  for (const cuda::Activity& activity : activities) {
    const std::uint64_t origin = activities.front().start_ns;
    out.emplace_back(activity.kind, activity.name == nullptr ? "" : *activity.name, activity.stream,
                     activity.start_ns - origin, activity.end_ns - origin);
  }
  return out;
}

void register_enums(py::module_& module) {
  using cuda::ActivityKind;
  using cuda::GateKind;
  using cuda::GuardKind;
  using cuda::Invalid;
  using cuda::Method;
  using cuda::Quantity;
  py::native_enum<Method>(module, "Method", "enum.Enum", "How the device's time is taken.")
      .value("device_span", Method::device_span)
      .value("context_span", Method::context_span)
      .value("kernel_sum", Method::kernel_sum)
      .value("host_issue", Method::host_issue)
      .finalize();
  py::native_enum<GateKind>(module, "Gate", "enum.Enum", "How a stream is held while a sample is enqueued.")
      .value("none", GateKind::none)
      .value("stream_wait", GateKind::stream_wait)
      .value("spin", GateKind::spin)
      .finalize();
  py::native_enum<GuardKind>(module, "Guard", "enum.Enum", "How work that outlives the stop event is found.")
      .value("none", GuardKind::none)
      .value("context_event", GuardKind::context_event)
      .value("context_sync", GuardKind::context_sync)
      .finalize();
  py::native_enum<ActivityKind>(module, "ActivityKind", "enum.Enum", "What the device did.")
      .value("kernel", ActivityKind::kernel)
      .value("copy", ActivityKind::copy)
      .value("fill", ActivityKind::fill)
      .finalize();
  py::native_enum<Quantity>(module, "StreamQuantity", "enum.Enum",
                            "What is known of each sample on a stream.")
      .value("host_issue_ns", Quantity::host_issue_ns)
      .value("device_span_ns", Quantity::device_span_ns)
      .value("context_span_ns", Quantity::context_span_ns)
      .value("kernel_sum_ns", Quantity::kernel_sum_ns)
      .value("busy_ns", Quantity::busy_ns)
      .value("gap_ns", Quantity::gap_ns)
      .value("copy_sum_ns", Quantity::copy_sum_ns)
      .finalize();
  py::native_enum<Invalid>(module, "Invalid", "enum.Enum", "Why a sample is not a number.")
      .value("gate_timed_out", Invalid::gate_timed_out)
      .value("hidden_work", Invalid::hidden_work)
      .value("records_dropped", Invalid::records_dropped)
      .value("no_activity", Invalid::no_activity)
      .value("span_backwards", Invalid::span_backwards)
      .value("calls_were_reduced", Invalid::calls_were_reduced)
      .finalize();
}

}  // namespace

std::map<std::string, double> figures_of(const cuda::DeviceFloor& floor) {
  std::map<std::string, double> out;
  const auto add = [&out](const char* name, double value) {
    if (!std::isnan(value)) out[name] = value;
  };
  add("event_quantum_ns", floor.event_quantum_ns);
  add("empty_pair_ns", floor.empty_pair_ns);
  add("record_cost_ns", floor.record_cost_ns);
  add("launch_cost_ns", floor.launch_cost_ns);
  add("gate_release_ns", floor.gate_release_ns);
  add("timer_step_ns", floor.timer_step_ns);
  add("context_pair_ns", floor.context_pair_ns);
  add("record_step_ns", floor.record_step_ns);
  add("empty_kernel_ns", floor.empty_kernel_ns);
  return out;
}

void register_cuda_record(py::module_& module) {
  using cuda::StreamRecord;
  register_enums(module);
  const auto of_record = [](auto member) {
    return [member](const StreamRecordView& self) { return (*self.record).*member; };
  };
  py::class_<StreamRecordView>(module, "StreamRecord", "The result of one run on a stream.")
      .def_property_readonly("columns", &columns)
      .def_property_readonly("invalid", &invalid)
      .def_property_readonly(
          "started_ns",
          [](const StreamRecordView& self) { return Samples{self.record, self.record->table->started_ns()}; },
          "When the host began each sample, on the engine's clock since its calibration.")
      .def_property_readonly("kernels", &kernels)
      .def_property_readonly("streams", &streams)
      .def_property_readonly("last_sample", &last_sample)
      .def_property_readonly("floor",
                             [](const StreamRecordView& self) { return figures_of(self.record->floor); })
      .def_property_readonly("exception", [](const StreamRecordView& self) { return self.exception; })
      .def_property_readonly("stopped_by", of_record(&StreamRecord::stopped_by))
      .def_property_readonly("gate", of_record(&StreamRecord::gate))
      .def_property_readonly("guard", of_record(&StreamRecord::guard))
      .def_property_readonly("samples",
                             [](const StreamRecordView& self) { return self.record->table->size(); })
      .def_property_readonly("valid",
                             [](const StreamRecordView& self) { return self.record->table->valid(); })
      .def_property_readonly("between_samples",
                             [](const StreamRecordView& self) { return self.record->trace.between_samples; })
      .def_property_readonly("error", of_record(&StreamRecord::error))
      .def_property_readonly("elapsed_ns", of_record(&StreamRecord::elapsed_ns))
      .def_property_readonly("calls_per_sample", of_record(&StreamRecord::calls_per_sample))
      .def_property_readonly("halvings", of_record(&StreamRecord::halvings))
      .def_property_readonly("warm_up_calls", of_record(&StreamRecord::warm_up_calls))
      .def_property_readonly("warm_up_elapsed_ns", of_record(&StreamRecord::warm_up_elapsed_ns))
      .def_property_readonly("first_call_ns", of_record(&StreamRecord::first_call_ns))
      .def_property_readonly("warm_up_settled", of_record(&StreamRecord::warm_up_settled))
      .def_property_readonly("device", of_record(&StreamRecord::device))
      .def_property_readonly("stream", of_record(&StreamRecord::stream))
      .def_property_readonly("gate_because", of_record(&StreamRecord::gate_because))
      .def_property_readonly("kernels_absent_because", of_record(&StreamRecord::kernels_absent_because))
      .def_property_readonly("guard_allowed_ns", of_record(&StreamRecord::guard_allowed_ns))
      .def_property_readonly("longest_tail_ns", of_record(&StreamRecord::longest_tail_ns))
      .def_property_readonly("cache_bytes", of_record(&StreamRecord::cache_bytes))
      .def_property_readonly("flush_bytes", of_record(&StreamRecord::flush_bytes))
      .def_property_readonly("persisting_lines_reset", of_record(&StreamRecord::persisting_lines_reset))
      .def_property_readonly("slots", of_record(&StreamRecord::slots))
      .def_property_readonly("graph_nodes", of_record(&StreamRecord::graph_nodes))
      .def_property_readonly("trace_stream", of_record(&StreamRecord::trace_stream))
      .def_property_readonly("lost_records", of_record(&StreamRecord::lost_records))
      .def_property_readonly("cupti_version", of_record(&StreamRecord::cupti_version))
      .def_property_readonly("cupti_path", of_record(&StreamRecord::cupti_path))
      .def_property_readonly("cupti_was_used", of_record(&StreamRecord::cupti_was_used));
}

}  // namespace fairlap::bindings
