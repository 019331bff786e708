#include "telemetry/energy/energy.hpp"

#include <algorithm>
#include <cmath>
#include <stdexcept>

#include "telemetry/energy/counter_steps.hpp"

namespace fairlap::telemetry {
namespace {

constexpr double kSecondsPerNs = 1e-9;

RegionEnergy unresolved(std::string reason) {
  RegionEnergy energy;
  energy.unresolved_because = std::move(reason);
  return energy;
}

std::string milliseconds(std::int64_t ns) { return std::to_string(ns / 1'000'000) + " ms"; }

double at(const Point& before, const Point& after, std::int64_t time_ns) {
  if (after.time_ns == before.time_ns) return after.value;
  const double along =
      static_cast<double>(time_ns - before.time_ns) / static_cast<double>(after.time_ns - before.time_ns);
  return before.value + along * (after.value - before.value);
}

// The points from the last one at or before the begin to the first one at or after the end.
std::span<const Point> around(const std::vector<Point>& points, const Region& region) {
  const auto by_time = [](std::int64_t time_ns, const Point& point) { return time_ns < point.time_ns; };
  const auto first = std::upper_bound(points.begin(), points.end(), region.begin_ns, by_time) - 1;
  const auto last = std::lower_bound(points.begin(), points.end(), region.end_ns,
                                     [](const Point& point, std::int64_t t) { return point.time_ns < t; });
  return {first, last + 1};
}

// The counter's value at a time, on the line through the middles of its steps. Outside of them: the nearest.
double on_line(const std::vector<Step>& steps, double at_first, std::int64_t time_ns) {
  const auto next = std::upper_bound(steps.begin(), steps.end(), time_ns,
                                     [](std::int64_t t, const Step& step) { return t < step.middle_ns(); });
  if (next == steps.end()) return steps.back().value;
  if (next == steps.begin()) return at_first;
  const Step& before = *(next - 1);
  return at({before.middle_ns(), before.value}, {next->middle_ns(), next->value}, time_ns);
}

}  // namespace

RegionEnergy energy_of_power(std::span<const Reading> readings, const Region& region,
                             const PowerSensor& sensor) {
  const Usable known = usable(readings, region);
  if (!known.problem.empty()) return unresolved(known.problem);
  const std::span<const Point> points = around(known.points, region);

  RegionEnergy energy;
  energy.readings = known.inside;
  double joules = 0.0;
  double low_j = 0.0;
  double high_j = 0.0;
  double lowest_w = points.front().value;
  double highest_w = lowest_w;
  for (std::size_t i = 0; i < points.size(); ++i) {
    lowest_w = std::min(lowest_w, points[i].value);
    highest_w = std::max(highest_w, points[i].value);
    if (i == 0) continue;
    const Point& before = points[i - 1];
    const Point& after = points[i];
    const std::int64_t gap_ns = after.time_ns - before.time_ns;
    if (gap_ns > sensor.longest_gap_ns && energy.resolved()) {
      energy.unresolved_because = "there is a gap of " + milliseconds(gap_ns) + " between readings";
    }
    const std::int64_t from_ns = std::max(before.time_ns, region.begin_ns);
    const std::int64_t to_ns = std::min(after.time_ns, region.end_ns);
    const double seconds = static_cast<double>(to_ns - from_ns) * kSecondsPerNs;
    joules += (at(before, after, from_ns) + at(before, after, to_ns)) / 2.0 * seconds;
    low_j += std::min(before.value, after.value) * seconds;
    high_j += std::max(before.value, after.value) * seconds;
  }
  // A reading may show power up to `stale_ns` earlier: the integral is then one of a region moved by as
  // much, which differs by no more than the range of power over that time.
  const double moved_j = (highest_w - lowest_w) * static_cast<double>(sensor.stale_ns) * kSecondsPerNs;
  energy.low_j = std::max(0.0, low_j - moved_j) * (1.0 - sensor.gain_share);
  energy.high_j = (high_j + moved_j) * (1.0 + sensor.gain_share);
  const std::int64_t length_ns = region.end_ns - region.begin_ns;
  if (energy.resolved() && length_ns + sensor.window_ns < sensor.period_ns) {
    energy.unresolved_because = "the region lasts " + milliseconds(length_ns) + ", and the sensor looks " +
                                milliseconds(sensor.window_ns) + " in every " +
                                milliseconds(sensor.period_ns) + ": it may have seen none of it";
  }
  if (energy.readings < sensor.fewest_readings && energy.resolved()) {
    energy.unresolved_because = "too few readings: " + std::to_string(energy.readings) +
                                " inside the region, of " + std::to_string(sensor.fewest_readings) +
                                " needed";
  }
  if (energy.resolved()) energy.joules = joules;
  return energy;
}

RegionEnergy energy_of_counter(std::span<const Reading> readings, const Region& region, double wraps_at_j) {
  Usable known = usable(readings, region);
  if (!known.problem.empty()) return unresolved(known.problem);
  if (!unwrap(known.points, wraps_at_j)) {
    return unresolved("the counter went backwards: the driver was reloaded");
  }
  const std::vector<Step> steps = steps_of(known.points);
  const std::span<const Point> points = around(known.points, region);

  RegionEnergy energy;
  energy.readings = known.inside;
  // The counter lags behind the truth, by its step. So what it shows at a moment was surely spent by then;
  // and what it shows after a step that came wholly after a moment surely covers all that was spent until
  // then.
  const auto covers = [&](std::int64_t time_ns) {
    return std::find_if(steps.begin(), steps.end(),
                        [&](const Step& step) { return step.after_ns >= time_ns; });
  };
  const double shown_at_begin = points.front().value;
  const double shown_at_end = points.back().time_ns == region.end_ns || points.size() < 2
                                  ? points.back().value
                                  : points[points.size() - 2].value;
  const auto covers_begin = covers(region.begin_ns);
  const auto covers_end = covers(region.end_ns);
  if (covers_begin != steps.end()) energy.low_j = std::max(0.0, shown_at_end - covers_begin->value);
  if (covers_end != steps.end()) energy.high_j = covers_end->value - shown_at_begin;

  const auto inside = std::count_if(steps.begin(), steps.end(), [&](const Step& step) {
    return step.after_ns >= region.begin_ns && step.seen_ns <= region.end_ns;
  });
  if (inside < 1) {
    energy.unresolved_because = "no step of the counter is wholly inside the region";
  } else if (steps.front().middle_ns() > region.begin_ns) {
    energy.unresolved_because =
        "the counter made no step before the region, so its begin cannot be interpolated";
  } else if (covers_end == steps.end()) {
    energy.unresolved_because =
        "the counter made no step after the region, so its end cannot be interpolated";
  } else {
    const double joules = on_line(steps, known.points.front().value, region.end_ns) -
                          on_line(steps, known.points.front().value, region.begin_ns);
    energy.joules = std::clamp(joules, energy.low_j, energy.high_j);
  }
  return energy;
}

std::vector<Reading> readings_of(std::span<const Reading> all, std::uint32_t source, std::uint32_t field) {
  std::vector<Reading> own;
  for (const Reading& reading : all) {
    if (reading.source == source && reading.field == field) own.push_back(reading);
  }
  return own;
}

}  // namespace fairlap::telemetry
