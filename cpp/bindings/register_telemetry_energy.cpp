#include <pybind11/pybind11.h>
#include <pybind11/stl.h>

#include <cstdint>
#include <optional>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "bindings/register.hpp"
#include "bindings/telemetry_readings.hpp"
#include "telemetry/energy/energy.hpp"
#include "telemetry/energy/repeated_energy.hpp"

namespace py = pybind11;
using namespace fairlap;
using namespace fairlap::telemetry;

void register_telemetry_energy(py::module_& module) {
  py::class_<RegionEnergy>(module, "RegionEnergy",
                           "The energy of a region as an interval, or why it is unknown.")
      .def_readonly("joules", &RegionEnergy::joules)
      .def_readonly("low_j", &RegionEnergy::low_j)
      .def_readonly("high_j", &RegionEnergy::high_j)
      .def_readonly("unresolved_because", &RegionEnergy::unresolved_because)
      .def_readonly("readings", &RegionEnergy::readings);
  module.def(
      "energy_of_power",
      [](const Readings& readings, std::uint32_t source, std::uint32_t field, std::int64_t begin_ns,
         std::int64_t end_ns, double gain_share, std::int64_t stale_ns, std::int64_t longest_gap_ns,
         std::size_t fewest_readings, std::int64_t period_ns, std::int64_t window_ns) {
        return energy_of_power(readings_of(readings.rows, source, field), {begin_ns, end_ns},
                               {.gain_share = gain_share,
                                .stale_ns = stale_ns,
                                .longest_gap_ns = longest_gap_ns,
                                .fewest_readings = fewest_readings,
                                .period_ns = period_ns,
                                .window_ns = window_ns});
      },
      py::arg("readings"), py::arg("source"), py::arg("field"), py::arg("begin_ns"), py::arg("end_ns"),
      py::kw_only(), py::arg("gain_share"), py::arg("stale_ns"), py::arg("longest_gap_ns"),
      py::arg("fewest_readings"), py::arg("period_ns"), py::arg("window_ns"));
  module.def(
      "energy_of_counter",
      [](const Readings& readings, std::uint32_t source, std::uint32_t field, std::int64_t begin_ns,
         std::int64_t end_ns, double wraps_at) {
        return energy_of_counter(readings_of(readings.rows, source, field), {begin_ns, end_ns}, wraps_at);
      },
      py::arg("readings"), py::arg("source"), py::arg("field"), py::arg("begin_ns"), py::arg("end_ns"),
      py::kw_only(), py::arg("wraps_at"));
  py::class_<RepeatedEnergy>(module, "RepeatedEnergy", "The energy of one repeat, and how wrong it may be.")
      .def_readonly("joules", &RepeatedEnergy::joules)
      .def_readonly("low_j", &RepeatedEnergy::low_j)
      .def_readonly("high_j", &RepeatedEnergy::high_j)
      .def_readonly("alignment_share", &RepeatedEnergy::alignment_share)
      .def_readonly("spread_share", &RepeatedEnergy::spread_share)
      .def_readonly("disagreement_share", &RepeatedEnergy::disagreement_share)
      .def_readonly("gain_share", &RepeatedEnergy::gain_share)
      .def_readonly("seconds", &RepeatedEnergy::seconds)
      .def_readonly("unresolved_because", &RepeatedEnergy::unresolved_because);
  module.def(
      "repeated_energy",
      [](const Readings& readings, std::uint32_t source, std::uint32_t counter, double wraps_at,
         std::optional<std::uint32_t> power,
         const std::vector<std::tuple<std::int64_t, std::int64_t, std::size_t>>& trials, double gain_share,
         std::int64_t stale_ns) {
        std::vector<Trial> all;
        all.reserve(trials.size());
        for (const auto& [begin_ns, end_ns, repeats] : trials) all.push_back({{begin_ns, end_ns}, repeats});
        const auto counted = readings_of(readings.rows, source, counter);
        const auto powers = power ? readings_of(readings.rows, source, *power) : std::vector<Reading>{};
        return repeated_energy(all, counted, wraps_at, powers,
                               {.gain_share = gain_share, .stale_ns = stale_ns});
      },
      py::arg("readings"), py::arg("source"), py::arg("counter"), py::kw_only(), py::arg("wraps_at"),
      py::arg("power"), py::arg("trials"), py::arg("gain_share"), py::arg("stale_ns"));
}
