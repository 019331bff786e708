#pragma once

#include <cstdint>
#include <limits>
#include <span>
#include <string>
#include <vector>

#include "telemetry/sampling/reading.hpp"

namespace fairlap::telemetry {

// A stretch of time on the engine's clock.
struct Region {
  std::int64_t begin_ns = 0;
  std::int64_t end_ns = 0;

  [[nodiscard]] double seconds() const noexcept { return static_cast<double>(end_ns - begin_ns) * 1e-9; }
};

// The energy of a region, with the interval that the readings support. Unresolved, it has no value
// but NaN; where the readings around it still bound it, the interval gives those bounds.
struct RegionEnergy {
  double joules = std::numeric_limits<double>::quiet_NaN();
  double low_j = std::numeric_limits<double>::quiet_NaN();
  double high_j = std::numeric_limits<double>::quiet_NaN();
  std::string unresolved_because;  // empty: resolved
  std::size_t readings = 0;        // inside the region

  [[nodiscard]] bool resolved() const noexcept { return unresolved_because.empty(); }
};

// What is known of the sensor, for the bounds.
struct PowerSensor {
  double gain_share = 0.0;    // by how much all of its readings may be wrong alike, such as 0.05
  std::int64_t stale_ns = 0;  // how old a reading's value may be: publication period and window
  std::int64_t longest_gap_ns = 1'000'000'000;  // between readings; a longer one hides too much
  std::size_t fewest_readings = 1;              // inside the region
  std::int64_t period_ns = 0;  // of publication; a region that the sensor may have missed is unresolved
  std::int64_t window_ns = 0;  // before each publication, in which the sensor looks
};

// Integral of power, a straight line between readings, the line cut at the region's bounds. `readings` are of
// one field of one source, in order of time, in watts. Between two readings power is taken to be between
// their values.
RegionEnergy energy_of_power(std::span<const Reading> readings, const Region& region,
                             const PowerSensor& sensor);

// Difference of a counter in joules, interpolated between its steps to the region's bounds. The interval is
// what the counter's whole steps prove: energy that was surely inside, and energy that surely covers it. A
// counter without a wrap (0) that goes backwards was reset by the driver: unresolved.
RegionEnergy energy_of_counter(std::span<const Reading> readings, const Region& region, double wraps_at_j);

// The readings of one field, in the order of time. What a source gave before and after others' stays in
// order.
std::vector<Reading> readings_of(std::span<const Reading> all, std::uint32_t source, std::uint32_t field);

}  // namespace fairlap::telemetry
