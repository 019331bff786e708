#include "telemetry/energy/counter_steps.hpp"

#include <stdexcept>

namespace fairlap::telemetry {

Usable usable(std::span<const Reading> readings, const Region& region) {
  Usable out;
  if (region.end_ns <= region.begin_ns) {
    out.problem = "the region has no length";
    return out;
  }
  for (const Reading& reading : readings) {
    if (reading.state == ReadingState::source_lost && reading.time_ns <= region.end_ns) {
      out.problem = "the source was lost before the region's end";
      return out;
    }
    if (reading.state != ReadingState::value) continue;  // dropped; what it leaves is a gap
    if (!out.points.empty() && reading.time_ns < out.points.back().time_ns) {
      throw std::invalid_argument("readings must be of one field and in order of time");
    }
    out.points.push_back({reading.time_ns, reading.value});
    if (reading.time_ns >= region.begin_ns && reading.time_ns <= region.end_ns) ++out.inside;
  }
  if (out.points.empty()) {
    out.problem = readings.empty() ? "no readings" : "every reading failed";
  } else if (out.points.front().time_ns > region.begin_ns) {
    out.problem = "the first reading is after the start of the region";
  } else if (out.points.back().time_ns < region.end_ns) {
    out.problem = "the last reading is before the end of the region";
  }
  return out;
}

bool unwrap(std::vector<Point>& points, double wraps_at) {
  double added = 0.0;
  double before = points.front().value;
  for (Point& point : points) {
    if (point.value < before) {
      if (wraps_at <= 0.0) return false;
      added += wraps_at;
    }
    before = point.value;
    point.value += added;
  }
  return true;
}

std::vector<Step> steps_of(std::span<const Point> points) {
  std::vector<Step> steps;
  for (std::size_t i = 1; i < points.size(); ++i) {
    if (points[i].value > points[i - 1].value) {
      steps.push_back({points[i - 1].time_ns, points[i].time_ns, points[i].value});
    }
  }
  return steps;
}

}  // namespace fairlap::telemetry
