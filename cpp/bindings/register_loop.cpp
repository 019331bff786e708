#include <pybind11/native_enum.h>
#include <pybind11/pybind11.h>
#include <pybind11/stl.h>
#include <pybind11/typing.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <iterator>
#include <memory>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "bindings/collector_pause.hpp"
#include "bindings/native_work.hpp"
#include "bindings/one_at_a_time.hpp"
#include "bindings/python_work.hpp"
#include "bindings/register.hpp"
#include "bindings/samples.hpp"
#include "loop/c_call.hpp"
#include "loop/robust_interval.hpp"
#include "loop/run.hpp"
#include "loop/turns.hpp"

namespace py = pybind11;
using namespace fairlap;
using bindings::Drawing;
using bindings::NativeTarget;
using bindings::NativeWork;
using bindings::PythonWork;
using bindings::Samples;

namespace {

// A callable, its arguments and its keywords.
using BoundTuple = py::typing::Tuple<py::object, py::typing::Tuple<py::object, py::ellipsis>,
                                     py::typing::Dict<py::str, py::object>>;

struct Groups {
  std::shared_ptr<loop::Record> record;
};

using loop::Disturbances;
constexpr std::pair<const char*, std::int64_t Disturbances::*> kDisturbances[] = {
    {"minor_faults", &Disturbances::minor_faults},
    {"major_faults", &Disturbances::major_faults},
    {"voluntary_switches", &Disturbances::voluntary_switches},
    {"involuntary_switches", &Disturbances::involuntary_switches},
    {"cpu_ns", &Disturbances::cpu_ns},
};

// The members of loop::Group in their order, in the struct notation of PEP 3118, which NumPy reads as a
// structured array.
std::string group_format() {
  static_assert(sizeof(loop::Group) == (4 + 2 * std::size(kDisturbances) + 2) * sizeof(std::int64_t));
  std::string format = "T{";
  const auto add = [&format](const std::string& name) { format += "q:" + name + ":"; };
  for (const char* const name : {"first_sample", "samples", "start_ns", "elapsed_ns"}) add(name);
  for (const char* const whose : {"thread_", "process_"}) {
    for (const auto& [name, member] : kDisturbances) add(std::string(whose) + name);
  }
  for (const char* const name : {"migrations", "cpu"}) add(name);
  return format + "}";
}

// The columns that add up over a run.
py::typing::Dict<py::str, py::int_> group_totals(const loop::GroupTable& table) {
  loop::Group total;
  for (const loop::Group& group : table.groups()) append(total, group);
  py::typing::Dict<py::str, py::int_> totals;
  for (const auto& [whose, disturbances] :
       {std::pair{"thread_", total.thread}, {"process_", total.process}}) {
    for (const auto& [name, member] : kDisturbances)
      totals[py::str(std::string(whose) + name)] = disturbances.*member;
  }
  totals["migrations"] = total.migrations;
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
LoopRecord time_calls(TimedWork& work, const clock::Clock& on_clock, const loop::Settings& settings,
                      bool pause_collector) {
  const bindings::OneAtATime one_at_a_time;
  const bindings::CollectorPause pause(pause_collector);
  LoopRecord out;
  {
    const py::gil_scoped_release no_lock;
    loop::TakerFor<TimedWork> taker(work, on_clock.source());
    out.record = loop::run(taker, on_clock, settings);
  }
  out.collector_came_back = pause.undone();
  out.exception = work.exception();
  const bool raised = !out.exception.is_none() && !py::isinstance(out.exception, PyExc_KeyboardInterrupt);
  if (raised) out.record->stopped_by = loop::StopReason::raised;
  if (!raised && !out.exception.is_none()) out.record->stopped_by = loop::StopReason::interrupt;
  return out;
}

LoopRecord time_calls_of(const py::object& call, const clock::Clock& on_clock, std::size_t samples,
                         double seconds, double target, std::uint64_t calls_per_sample, double floor_multiple,
                         loop::WarmUpKind warm_up, std::uint64_t warm_up_calls, double warm_up_max_seconds,
                         bool pause_collector, std::vector<double> drawn_at) {
  const loop::Settings settings{.stop = {.samples = samples, .seconds = seconds, .target_half_width = target},
                                .calls_per_sample = calls_per_sample,
                                .floor_multiple = floor_multiple,
                                .warm_up = warm_up,
                                .warm_up_calls = warm_up_calls,
                                .warm_up_max_seconds = warm_up_max_seconds,
                                .drawn_at = std::move(drawn_at)};
  if (py::isinstance<NativeWork>(call)) {
    return time_calls(call.cast<NativeWork&>(), on_clock, settings, pause_collector);
  }
  return time_calls(call.cast<PythonWork&>(), on_clock, settings, pause_collector);
}

// The samples of callables that took turns, in the order of their turns.
struct TurnsRecord {
  std::shared_ptr<std::vector<double>> wall_ns;
  loop::TurnsTaken end{};
  loop::StopReason stopped_by = loop::StopReason::samples;
  py::object exception = py::none();
};

template <class TimedWork>
std::unique_ptr<loop::SliceTaker> taker_of(const py::object& call, clock::Source source) {
  return std::make_unique<loop::TakerFor<TimedWork>>(call.cast<TimedWork&>(), source);
}

TurnsRecord time_in_turns(const std::vector<py::object>& calls, const clock::Clock& on_clock,
                          const std::vector<std::uint64_t>& calls_per_sample,
                          const std::vector<std::uint32_t>& order,
                          const std::vector<std::pair<std::size_t, std::uint32_t>>& drawn,
                          bool pause_collector) {
  if (calls.size() != calls_per_sample.size())
    throw std::invalid_argument("one number of calls for each callable");
  for (const std::uint32_t place : order) {
    if (place >= calls.size()) throw std::invalid_argument("the order names a callable that is not there");
  }
  std::vector<loop::DrawnTurn> drawn_turns;
  drawn_turns.reserve(drawn.size());
  for (const auto& [before, work] : drawn) {
    if (work >= calls.size()) throw std::invalid_argument("a drawn call is of a callable that is not there");
    drawn_turns.push_back({.before = before, .work = work});
  }
  std::vector<std::unique_ptr<loop::SliceTaker>> takers;
  std::vector<loop::Turntaker> works;
  for (std::size_t place = 0; place < calls.size(); ++place) {
    const bool native = py::isinstance<NativeWork>(calls[place]);
    takers.push_back(native ? taker_of<NativeWork>(calls[place], on_clock.source())
                            : taker_of<PythonWork>(calls[place], on_clock.source()));
    works.push_back({.taker = takers.back().get(), .calls_per_sample = calls_per_sample[place]});
  }
  TurnsRecord out{.wall_ns = std::make_shared<std::vector<double>>(order.size())};
  const bindings::OneAtATime one_at_a_time;
  const bindings::CollectorPause pause(pause_collector);
  {
    const py::gil_scoped_release no_lock;
    out.end = loop::take_turns(works, order, drawn_turns, on_clock, *out.wall_ns);
  }
  if (out.end.why == loop::Interruption::none) return out;
  const py::object& last = calls[out.end.last];
  out.exception = py::isinstance<NativeWork>(last) ? last.cast<NativeWork&>().exception()
                                                   : last.cast<PythonWork&>().exception();
  const bool raised = !out.exception.is_none() && !py::isinstance(out.exception, PyExc_KeyboardInterrupt);
  out.stopped_by = raised ? loop::StopReason::raised : loop::StopReason::interrupt;
  return out;
}

std::span<const double> doubles_in(const py::buffer_info& info) {
  if (info.ndim != 1 || info.format != py::format_descriptor<double>::format()) {
    throw py::type_error("samples must be a one-dimensional buffer of float64");
  }
  if (info.size > 1 && info.strides[0] != sizeof(double)) throw py::type_error("samples must be contiguous");
  return {static_cast<const double*>(info.ptr), static_cast<std::size_t>(info.size)};
}

void register_enums(py::module_& module) {
  using loop::StopReason;
  using loop::WarmUpKind;
  py::native_enum<StopReason>(module, "StopReason", "enum.Enum", "Why a run ended.")
      .value("samples", StopReason::samples)
      .value("seconds", StopReason::seconds)
      .value("target", StopReason::target)
      .value("full", StopReason::full)
      .value("interrupt", StopReason::interrupt)
      .value("raised", StopReason::raised)
      .value("timeout", StopReason::timeout)
      .value("gate", StopReason::gate)
      .value("cuda_error", StopReason::cuda_error)
      .finalize();
  py::native_enum<WarmUpKind>(module, "WarmUpKind", "enum.Enum", "How a run is warmed up.")
      .value("none", WarmUpKind::none)
      .value("calls", WarmUpKind::calls)
      .value("found", WarmUpKind::found)
      .finalize();
}

void register_work(py::module_& module) {
  py::class_<PythonWork>(module, "PythonCall",
                         "Python callables that take turns, with their arguments bound, ready to be timed.")
      .def(py::init([](const std::vector<BoundTuple>& calls, py::object completion, py::object drawn_call,
                       py::object look, py::object preparation) {
             if (calls.empty()) throw std::invalid_argument("there must be a call to time");
             return std::make_unique<PythonWork>(
                 std::vector<py::tuple>(calls.begin(), calls.end()), std::move(completion),
                 Drawing{.call = std::move(drawn_call), .look = std::move(look)}, std::move(preparation));
           }),
           py::arg("calls"), py::arg("completion").none(true), py::arg("drawn_call").none(true) = py::none(),
           py::arg("look").none(true) = py::none(), py::arg("preparation").none(true) = py::none());
  py::class_<NativeWork>(module, "NativeCall", "A C function, void f(void* context), ready to be timed.")
      .def(py::init([](std::uintptr_t function, const std::vector<std::uintptr_t>& contexts,
                       std::uintptr_t completion, std::uintptr_t completion_context, py::object drawn_context,
                       py::object look) {
             if (function == 0)
               throw std::invalid_argument("the address of a native function must not be zero");
             if (contexts.empty()) throw std::invalid_argument("there must be a context to call it with");
             std::vector<void*> pointers;
             pointers.reserve(contexts.size());
             for (const std::uintptr_t context : contexts)
               pointers.push_back(reinterpret_cast<void*>(context));
             return std::make_unique<NativeWork>(
                 reinterpret_cast<bindings::NativeFunction>(function), std::move(pointers),
                 NativeTarget{reinterpret_cast<bindings::NativeFunction>(completion),
                              reinterpret_cast<void*>(completion_context)},
                 Drawing{.call = std::move(drawn_context), .look = std::move(look)});
           }),
           py::arg("function"), py::arg("contexts") = std::vector<std::uintptr_t>{0},
           py::arg("completion") = 0, py::arg("completion_context") = 0,
           py::arg("drawn_context").none(true) = py::none(), py::arg("look").none(true) = py::none());

  module.attr("INTEGER_REGISTERS") = loop::kIntegerRegisters;
  module.attr("FLOAT_REGISTERS") = loop::kFloatRegisters;
  module.def(
      "address_of_c_call",
      [](bool returns_float) {
        return reinterpret_cast<std::uintptr_t>(returns_float ? loop::call_returning_float
                                                              : loop::call_returning_integer);
      },
      py::kw_only(), py::arg("returns_float"),
      "Of a native function that calls a C function with its arguments; see loop/c_call.hpp.");
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
  py::class_<Groups>(module, "Groups", py::buffer_protocol(),
                     "What happened while the samples were taken, in groups of neighbouring samples.")
      .def_buffer([](Groups& groups) { return buffer_of(groups); })
      .def("totals", [](const Groups& groups) { return group_totals(groups.record->groups); })
      .def("__len__", [](const Groups& groups) { return groups.record->groups.groups().size(); });

  const auto of_record = [](auto member) {
    return [member](const LoopRecord& self) { return (*self.record).*member; };
  };
  const auto of_warm_up = [](auto member) {
    return [member](const LoopRecord& self) { return self.record->warm_up.*member; };
  };
  py::class_<LoopRecord>(module, "LoopRecord", "The result of one run of the measured loop.")
      .def_property_readonly(
          "wall_ns", [](const LoopRecord& self) { return Samples{self.record, self.record->wall_ns()}; })
      .def_property_readonly(
          "host_issue_ns",
          [](const LoopRecord& self) { return Samples{self.record, self.record->host_issue_ns()}; })
      .def_property_readonly("groups", [](const LoopRecord& self) { return Groups{self.record}; })
      .def_property_readonly("exception", [](const LoopRecord& self) { return self.exception; })
      .def_readonly("collector_came_back", &LoopRecord::collector_came_back)
      .def_property_readonly("stopped_by", of_record(&loop::Record::stopped_by))
      .def_property_readonly("samples", of_record(&loop::Record::taken))
      .def_property_readonly("backward_samples", of_record(&loop::Record::backward))
      .def_property_readonly("calls_per_sample", of_record(&loop::Record::calls_per_sample))
      .def_property_readonly("correction_ns", of_record(&loop::Record::correction_ns))
      .def_property_readonly("elapsed_ns", of_record(&loop::Record::elapsed_ns))
      .def_property_readonly("stolen_ns", of_record(&loop::Record::stolen_ns))
      .def_property_readonly("clock_check", of_record(&loop::Record::clock_check))
      .def_property_readonly("clock_source_changed", of_record(&loop::Record::clock_source_changed))
      .def_property_readonly("warm_up_kind", of_warm_up(&loop::WarmUpDone::kind))
      .def_property_readonly("warm_up_settled", of_warm_up(&loop::WarmUpDone::settled))
      .def_property_readonly("warm_up_calls", of_warm_up(&loop::WarmUpDone::calls))
      .def_property_readonly("warm_up_elapsed_ns", of_warm_up(&loop::WarmUpDone::elapsed_ns))
      .def_property_readonly("first_call_ns", of_warm_up(&loop::WarmUpDone::first_call_ns));
}

void register_turns(py::module_& module) {
  py::class_<TurnsRecord>(module, "TurnsRecord", "The samples of callables that took turns.")
      .def_property_readonly("wall_ns",
                             [](const TurnsRecord& self) {
                               return Samples{self.wall_ns,
                                              std::span<const double>(*self.wall_ns).first(self.end.taken)};
                             })
      .def_property_readonly("last", [](const TurnsRecord& self) { return self.end.last; })
      .def_property_readonly("elapsed_ns", [](const TurnsRecord& self) { return self.end.elapsed_ns; })
      .def_property_readonly("exception", [](const TurnsRecord& self) { return self.exception; })
      .def_readonly("stopped_by", &TurnsRecord::stopped_by);
  module.def("time_in_turns", &time_in_turns, py::arg("calls"), py::arg("clock"), py::kw_only(),
             py::arg("calls_per_sample"), py::arg("order"), py::arg("drawn"), py::arg("pause_collector"));
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
          if (!(share >= 0.0 && share <= 1.0))
            throw std::invalid_argument("a quantile must be between 0 and 1");
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
  register_enums(module);
  register_work(module);
  module.def("capsule_function", &capsule_function, py::arg("capsule"));
  register_record(module);
  register_turns(module);
  register_statistics(module);
  module.def("time_calls", &time_calls_of, py::arg("call"), py::arg("clock"), py::kw_only(),
             py::arg("samples"), py::arg("seconds"), py::arg("target"), py::arg("calls_per_sample"),
             py::arg("floor_multiple"), py::arg("warm_up"), py::arg("warm_up_calls"),
             py::arg("warm_up_max_seconds"), py::arg("pause_collector"),
             py::arg("drawn_at") = std::vector<double>{});
}
