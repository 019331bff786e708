#pragma once

#include <span>
#include <string>
#include <vector>

#include "telemetry/energy/energy.hpp"

namespace fairlap::telemetry {

// One value on the line of readings.
struct Point {
  std::int64_t time_ns;
  double value;
};

// Readings with a value, and why the region cannot be judged, if a reading in reach forbids it.
struct Usable {
  std::vector<Point> points;
  std::size_t inside = 0;
  std::string problem;
};

Usable usable(std::span<const Reading> readings, const Region& region);

// Each rise of a counter happened after the reading before and not after the reading that showed it.
struct Step {
  std::int64_t after_ns;
  std::int64_t seen_ns;
  double value;  // from here on

  [[nodiscard]] std::int64_t middle_ns() const { return after_ns + (seen_ns - after_ns) / 2; }
};

// The counter made to grow on over its wraps; false when it went backwards.
bool unwrap(std::vector<Point>& points, double wraps_at);
std::vector<Step> steps_of(std::span<const Point> points);

}  // namespace fairlap::telemetry
