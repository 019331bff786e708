#include <pybind11/native_enum.h>
#include <pybind11/pybind11.h>
#include <pybind11/stl.h>
#include <pybind11/typing.h>

#include <chrono>
#include <cmath>
#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "bindings/register.hpp"
#include "bindings/telemetry_readings.hpp"
#include "telemetry/sampling/machine_sources.hpp"
#include "telemetry/sampling/sampler.hpp"

namespace py = pybind11;
using namespace fairlap;
using namespace fairlap::telemetry;

namespace {

// The struct notation of PEP 3118, which NumPy reads as a structured array.
constexpr const char* kReadingFormat =
    "T{q:time_ns:q:width_ns:q:source_time_us:d:value:I:source:I:field:I:state:i:code:}";

py::buffer_info buffer_of(Readings& readings) {
  return {readings.rows.data(),
          sizeof(Reading),
          kReadingFormat,
          1,
          {static_cast<py::ssize_t>(readings.rows.size())},
          {sizeof(Reading)},
          true};
}

std::chrono::nanoseconds nanoseconds_of(double seconds, const char* what) {
  constexpr double kLongest = 1e6;  // far from where nanoseconds overflow
  if (!(seconds > 0.0 && seconds < kLongest)) {
    throw std::invalid_argument(std::string(what) + " must be a number of seconds above 0");
  }
  return std::chrono::nanoseconds(std::llround(seconds * 1e9));
}

std::unique_ptr<Sampler> make_sampler(const clock::Clock& on_clock, double fast_period_s,
                                      double slow_period_s, double rare_period_s, double most_call_share,
                                      double jitter_share, std::uint64_t seed, std::size_t readings,
                                      std::size_t marks, const std::string& root,
                                      const std::string& nvml_library) {
  const SamplerSettings settings{.fast_period = nanoseconds_of(fast_period_s, "fast_period_s"),
                                 .slow_period = nanoseconds_of(slow_period_s, "slow_period_s"),
                                 .rare_period = nanoseconds_of(rare_period_s, "rare_period_s"),
                                 .most_call_share = most_call_share,
                                 .jitter_share = jitter_share,
                                 .seed = seed,
                                 .readings = readings,
                                 .marks = marks};
  const py::gil_scoped_release no_lock;  // starting NVML takes a while
  return std::make_unique<Sampler>(machine_sources(root, nvml_library), on_clock, settings);
}

py::typing::Dict<py::str, py::int_> counts_of(const Sampler& sampler) {
  const SamplerCounts counts = sampler.counts();
  py::typing::Dict<py::str, py::int_> out;
  out["rounds"] = counts.rounds;
  out["slow_rounds"] = counts.slow_rounds;
  out["rare_rounds"] = counts.rare_rounds;
  out["held_back"] = counts.held_back;
  out["missed"] = counts.missed;
  out["overflowed_readings"] = counts.overflowed_readings;
  out["overflowed_marks"] = counts.overflowed_marks;
  out["worst_lateness_ns"] = counts.worst_lateness_ns;
  out["cpu_ns"] = counts.cpu_ns;
  out["calls_ns"] = counts.calls_ns;
  return out;
}

// What is known of a source, which stays true when the sampler is gone.
struct SourceFacts {
  std::string name;
  std::string absent_because;
  std::vector<Field> fields;
};

std::vector<SourceFacts> sources_of(const Sampler& sampler) {
  std::vector<SourceFacts> facts;
  for (const auto& source : sampler.sources()) {
    facts.push_back({source->name(), source->absent_because(), source->fields()});
  }
  return facts;
}

}  // namespace

void register_telemetry(py::module_& module) {
  py::register_exception<ForkedSampler>(module, "ForkedSampler", PyExc_RuntimeError);
  py::register_exception<NotNow>(module, "SamplerRuns", PyExc_RuntimeError);
  py::native_enum<Lane>(module, "Lane", "enum.Enum", "How often a field is read.")
      .value("fast", Lane::fast)
      .value("slow", Lane::slow)
      .value("rare", Lane::rare)
      .finalize();
  py::native_enum<ReadingState>(module, "ReadingState", "enum.IntEnum", "What a reading holds.")
      .value("reading", ReadingState::value)
      .value("failed", ReadingState::failed)
      .value("source_lost", ReadingState::source_lost)
      .finalize();
  py::class_<Field>(module, "TelemetryField", "One number of a source; its name ends in its unit.")
      .def_readonly("name", &Field::name)
      .def_readonly("wraps_at", &Field::wraps_at)
      .def_readonly("absent_because", &Field::absent_because)
      .def_readonly("lane", &Field::lane)
      .def_property_readonly("counter", [](const Field& field) { return field.kind == FieldKind::counter; });
  py::class_<SourceFacts>(module, "TelemetrySource",
                          "Something that is read, or the reason why it is absent.")
      .def_readonly("name", &SourceFacts::name)
      .def_readonly("absent_because", &SourceFacts::absent_because)
      .def_readonly("fields", &SourceFacts::fields);
  py::class_<Readings>(module, "Readings", py::buffer_protocol(), "What a sampler read, in order of time.")
      .def_buffer([](Readings& readings) { return buffer_of(readings); })
      .def("__len__", [](const Readings& readings) { return readings.rows.size(); });
  py::class_<Sampler>(module, "Sampler", "Reads this machine's sensors on a native thread.")
      .def(py::init(&make_sampler), py::arg("clock"), py::kw_only(), py::arg("fast_period_s"),
           py::arg("slow_period_s"), py::arg("rare_period_s"), py::arg("most_call_share"),
           py::arg("jitter_share"), py::arg("seed"), py::arg("readings"), py::arg("marks"), py::arg("root"),
           py::arg("nvml_library"), py::keep_alive<1, 2>())
      .def("start", &Sampler::start, py::call_guard<py::gil_scoped_release>())
      .def("stop", &Sampler::stop, py::call_guard<py::gil_scoped_release>())
      .def("mark", &Sampler::mark, py::arg("label"))
      .def("collect",
           [](Sampler& sampler) {
             const py::gil_scoped_release no_lock;
             Readings readings;
             sampler.collect(readings.rows);
             return readings;
           })
      .def("collect_marks",
           [](Sampler& sampler) {
             std::vector<Mark> marks;
             sampler.collect(marks);
             std::vector<std::pair<std::int64_t, std::uint64_t>> out;
             out.reserve(marks.size());
             for (const Mark& mark : marks) out.emplace_back(mark.time_ns, mark.label);
             return out;
           })
      .def(
          "read_each_alone",
          [](Sampler& sampler, double seconds) {
            const auto length = nanoseconds_of(seconds, "seconds");
            const py::gil_scoped_release no_lock;
            return Readings{sampler.read_each_alone(length)};
          },
          py::arg("seconds"))
      .def(
          "set_fast_period",
          [](Sampler& sampler, double seconds) {
            sampler.set_fast_period(nanoseconds_of(seconds, "seconds"));
          },
          py::arg("seconds"), py::call_guard<py::gil_scoped_release>())
      .def("counts", &counts_of)
      .def(
          "text_of",
          [](const Sampler& sampler, std::size_t source, std::int32_t code) {
            return sampler.sources().at(source)->text_of(code);
          },
          py::arg("source"), py::arg("code"))
      .def_property_readonly("running", &Sampler::running)
      .def_property_readonly(
          "period_s",
          [](const Sampler& sampler) { return std::chrono::duration<double>(sampler.period()).count(); })
      .def_property_readonly("sources", &sources_of);
}
