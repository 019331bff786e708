#include <pybind11/pybind11.h>
#include <pybind11/stl.h>
#include <pybind11/typing.h>

#include <array>
#include <cmath>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "bindings/collector_pause.hpp"
#include "bindings/native_work.hpp"
#include "bindings/one_at_a_time.hpp"
#include "bindings/python_work.hpp"
#include "bindings/samples.hpp"
#include "loop/measured_loop.hpp"
#include "loop/robust_interval.hpp"

namespace py = pybind11;
using namespace fairlap;
using bindings::NativeTarget;
using bindings::NativeWork;
using bindings::PythonWork;
using bindings::Samples;

namespace {

const char* name_of(loop::StopReason reason) {
  switch (reason) {
    case loop::StopReason::samples:
      return "samples";
    case loop::StopReason::seconds:
      return "seconds";
    case loop::StopReason::target:
      return "target";
    case loop::StopReason::full:
      return "full";
    case loop::StopReason::stop_requested:
      return "interrupt";
    case loop::StopReason::raised:
      return "raised";
  }
  return "raised";
}

const char* name_of(loop::WarmUpKind kind) {
  switch (kind) {
    case loop::WarmUpKind::none:
      return "none";
    case loop::WarmUpKind::calls:
      return "calls";
    case loop::WarmUpKind::found:
      return "found";
  }
  return "none";
}

loop::WarmUpKind warm_up_kind(const std::string& name) {
  if (name == "none") return loop::WarmUpKind::none;
  if (name == "calls") return loop::WarmUpKind::calls;
  if (name == "found") return loop::WarmUpKind::found;
  throw std::invalid_argument("a warm-up is none, calls or found, not '" + name + "'");
}

struct Groups {
  std::shared_ptr<loop::Record> record;
};

// The columns of loop::Group in their order, which is all int64.
constexpr std::array group_columns{
    "first_sample",
    "samples",
    "start_ns",
    "elapsed_ns",
    "thread_minor_faults",
    "thread_major_faults",
    "thread_voluntary_switches",
    "thread_involuntary_switches",
    "thread_cpu_ns",
    "process_minor_faults",
    "process_major_faults",
    "process_voluntary_switches",
    "process_involuntary_switches",
    "process_cpu_ns",
    "migrations",
    "cpu",
};
static_assert(sizeof(loop::Group) == group_columns.size() * sizeof(std::int64_t));

// The struct notation of PEP 3118, which NumPy reads as a structured array.
std::string group_format() {
  std::string format = "T{";
  for (const char* name : group_columns) format += std::string("q:") + name + ":";
  return format + "}";
}

// The columns that add up over a run.
py::typing::Dict<py::str, py::int_> group_totals(const loop::GroupTable& table) {
  py::typing::Dict<py::str, py::int_> totals;
  for (std::size_t column = 4; column + 1 < group_columns.size(); ++column) {
    std::int64_t sum = 0;
    for (const loop::Group& group : table.groups()) {
      sum += reinterpret_cast<const std::int64_t*>(&group)[column];
    }
    totals[group_columns[column]] = sum;
  }
  return totals;
}

py::buffer_info buffer_of(Samples& samples) {
  return {const_cast<double*>(samples.values.data()),
          sizeof(double),
          py::format_descriptor<double>::format(),
          1,
          {static_cast<py::ssize_t>(samples.values.size())},
          {sizeof(double)},
          true};
}

py::buffer_info buffer_of(Groups& groups) {
  const std::span<const loop::Group> rows = groups.record->groups.groups();
  return {const_cast<loop::Group*>(rows.data()),
          sizeof(loop::Group),
          group_format(),
          1,
          {static_cast<py::ssize_t>(rows.size())},
          {sizeof(loop::Group)},
          true};
}

// A finished run with what ended it.
struct LoopRecord {
  std::shared_ptr<loop::Record> record;
  py::object exception;
  bool collector_came_back = false;  // the callable switched the garbage collector on again
};

template <class TimedWork>
LoopRecord time_calls(TimedWork& work, const clock::Clock& on_clock, const loop::Plan& plan,
                      bool pause_collector) {
  const bindings::OneAtATime one_at_a_time;
  const bindings::CollectorPause pause(pause_collector);
  LoopRecord out;
  {
    const py::gil_scoped_release no_lock;
    loop::TakerFor<TimedWork> taker(work, on_clock.source());
    out.record = loop::run(taker, on_clock, plan);
  }
  out.collector_came_back = pause.undone();
  out.exception = work.exception();
  const bool raised = !out.exception.is_none() && !py::isinstance(out.exception, PyExc_KeyboardInterrupt);
  if (raised) out.record->stopped_by = loop::StopReason::raised;
  if (!raised && !out.exception.is_none()) out.record->stopped_by = loop::StopReason::stop_requested;
  return out;
}

LoopRecord time_calls_of(const py::object& call, const clock::Clock& on_clock, std::size_t samples,
                         double seconds, double target, std::uint64_t calls_per_sample, double floor_multiple,
                         const std::string& warm_up, std::uint64_t warm_up_calls, double warm_up_max_seconds,
                         bool pause_collector) {
  const loop::Plan plan{samples,        seconds,
                        target,         calls_per_sample,
                        floor_multiple, warm_up_kind(warm_up),
                        warm_up_calls,  warm_up_max_seconds};
  if (py::isinstance<NativeWork>(call)) {
    return time_calls(call.cast<NativeWork&>(), on_clock, plan, pause_collector);
  }
  return time_calls(call.cast<PythonWork&>(), on_clock, plan, pause_collector);
}

std::span<const double> doubles_in(const py::buffer_info& info) {
  if (info.ndim != 1 || info.format != py::format_descriptor<double>::format()) {
    throw py::type_error("samples must be a one-dimensional buffer of float64");
  }
  if (info.size > 1 && info.strides[0] != sizeof(double)) throw py::type_error("samples must be contiguous");
  return {static_cast<const double*>(info.ptr), static_cast<std::size_t>(info.size)};
}

void register_work(py::module_& module) {
  py::class_<PythonWork>(module, "PythonCall",
                         "A Python callable with its arguments bound, ready to be timed.")
      .def(py::init([](py::object call, const py::typing::Tuple<py::object, py::ellipsis>& args,
                       const py::typing::Dict<py::str, py::object>& kwargs, py::object completion) {
             return std::make_unique<PythonWork>(std::move(call), args, kwargs, std::move(completion));
           }),
           py::arg("call"), py::arg("args"), py::arg("kwargs"), py::arg("completion").none(true));
  py::class_<NativeWork>(module, "NativeCall", "A C function, void f(void* context), ready to be timed.")
      .def(py::init([](std::uintptr_t function, std::uintptr_t context, std::uintptr_t completion,
                       std::uintptr_t completion_context) {
             if (function == 0)
               throw std::invalid_argument("the address of a native function must not be zero");
             return std::make_unique<NativeWork>(
                 NativeTarget{reinterpret_cast<bindings::NativeFunction>(function),
                              reinterpret_cast<void*>(context)},
                 NativeTarget{reinterpret_cast<bindings::NativeFunction>(completion),
                              reinterpret_cast<void*>(completion_context)});
           }),
           py::arg("function"), py::arg("context") = 0, py::arg("completion") = 0,
           py::arg("completion_context") = 0);
}

// A capsule is called with its context as the only argument, so its signature must allow that.
py::typing::Tuple<py::int_, py::int_, py::str> capsule_function(const py::capsule& capsule) {
  const char* const name = capsule.name();
  const std::string signature = name == nullptr ? "" : name;
  for (const char* known : {"fairlap.call", "void (void *)", "void (void)", "void ()"}) {
    if (signature != known) continue;
    void* const context = PyCapsule_GetContext(capsule.ptr());
    return py::make_tuple(reinterpret_cast<std::uintptr_t>(capsule.get_pointer()),
                          reinterpret_cast<std::uintptr_t>(context), "capsule '" + signature + "'");
  }
  throw py::value_error("the capsule is named '" + signature +
                        "'; one that can be timed is named 'fairlap.call' or 'void (void *)'");
}

void register_record(py::module_& module) {
  py::class_<Samples>(module, "Samples", py::buffer_protocol(),
                      "float64 nanoseconds, read-only, in order of time; an invalid sample is NaN.")
      .def_buffer([](Samples& samples) { return buffer_of(samples); })
      .def("__len__", [](const Samples& samples) { return samples.values.size(); });
  py::class_<Groups>(module, "Groups", py::buffer_protocol(), "A table of what happened beside the samples.")
      .def_buffer([](Groups& groups) { return buffer_of(groups); })
      .def("totals", [](const Groups& groups) { return group_totals(groups.record->groups); })
      .def("__len__", [](const Groups& groups) { return groups.record->groups.groups().size(); });

  const auto of_record = [](auto member) {
    return [member](const LoopRecord& self) { return (*self.record).*member; };
  };
  const auto of_warm_up = [](auto member) {
    return [member](const LoopRecord& self) { return self.record->warm_up.*member; };
  };
  py::class_<LoopRecord>(module, "LoopRecord", "Everything one run of the measured loop left behind.")
      .def_property_readonly(
          "wall_ns", [](const LoopRecord& self) { return Samples{self.record, self.record->wall_ns()}; })
      .def_property_readonly(
          "host_issue_ns",
          [](const LoopRecord& self) { return Samples{self.record, self.record->host_issue_ns()}; })
      .def_property_readonly("groups", [](const LoopRecord& self) { return Groups{self.record}; })
      .def_property_readonly("exception", [](const LoopRecord& self) { return self.exception; })
      .def_readonly("collector_came_back", &LoopRecord::collector_came_back)
      .def_property_readonly("stopped_by",
                             [](const LoopRecord& self) { return name_of(self.record->stopped_by); })
      .def_property_readonly("samples", of_record(&loop::Record::taken))
      .def_property_readonly("backward_samples", of_record(&loop::Record::backward))
      .def_property_readonly("calls_per_sample", of_record(&loop::Record::calls_per_sample))
      .def_property_readonly("correction_ns", of_record(&loop::Record::correction_ns))
      .def_property_readonly("elapsed_ns", of_record(&loop::Record::elapsed_ns))
      .def_property_readonly("stolen_ns", of_record(&loop::Record::stolen_ns))
      .def_property_readonly("clock_check", of_record(&loop::Record::clock_check))
      .def_property_readonly("clock_source_changed", of_record(&loop::Record::clock_source_changed))
      .def_property_readonly("warm_up_kind",
                             [](const LoopRecord& self) { return name_of(self.record->warm_up.kind); })
      .def_property_readonly("warm_up_settled", of_warm_up(&loop::WarmUpDone::settled))
      .def_property_readonly("warm_up_calls", of_warm_up(&loop::WarmUpDone::calls))
      .def_property_readonly("warm_up_elapsed_ns", of_warm_up(&loop::WarmUpDone::elapsed_ns))
      .def_property_readonly("first_call_ns", of_warm_up(&loop::WarmUpDone::first_call_ns));
}

void register_statistics(py::module_& module) {
  py::class_<loop::RobustInterval>(module, "Interval", "A median and where it may lie.")
      .def_readonly("median", &loop::RobustInterval::median)
      .def_readonly("low", &loop::RobustInterval::low)
      .def_readonly("high", &loop::RobustInterval::high)
      .def_readonly("coverage", &loop::RobustInterval::coverage);
  module.def(
      "interval_of_median",
      [](const py::buffer& samples) {
        const py::buffer_info info = samples.request();
        const std::span<const double> values = doubles_in(info);
        std::vector<double> scratch(loop::batch_scratch_size(values.size()));
        return loop::interval_of_median(values, scratch);
      },
      py::arg("samples"));
  module.def(
      "quantiles",
      [](const py::buffer& samples, const std::vector<double>& shares) {
        const py::buffer_info info = samples.request();
        std::vector<double> valid;
        for (const double value : doubles_in(info)) {
          if (!std::isnan(value)) valid.push_back(value);
        }
        std::vector<double> out;
        for (const double share : shares) {
          if (!(share >= 0.0 && share <= 1.0)) throw std::invalid_argument("a quantile lies between 0 and 1");
          out.push_back(loop::quantile_in_place(valid, share));
        }
        return out;
      },
      py::arg("samples"), py::arg("shares"));
}

}  // namespace

void register_loop(py::module_& module) {
  py::register_exception<bindings::MeasurementInProgress>(module, "MeasurementInProgress",
                                                          PyExc_RuntimeError);
  register_work(module);
  module.def("capsule_function", &capsule_function, py::arg("capsule"));
  register_record(module);
  register_statistics(module);
  module.def("time_calls", &time_calls_of, py::arg("call"), py::arg("clock"), py::kw_only(),
             py::arg("samples"), py::arg("seconds"), py::arg("target"), py::arg("calls_per_sample"),
             py::arg("floor_multiple"), py::arg("warm_up"), py::arg("warm_up_calls"),
             py::arg("warm_up_max_seconds"), py::arg("pause_collector"));
}
