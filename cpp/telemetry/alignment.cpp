#include "telemetry/alignment.hpp"

#include <algorithm>
#include <cmath>
#include <stdexcept>

namespace fairlap::telemetry {
namespace {

constexpr double kPerMillion = 1e-6;
constexpr double kNarrowestNs = 1.0;  // so that an anchor without width does not weigh infinitely

AlignedTime beyond(std::span<const ClockAnchor> anchors, const ClockAnchor& nearest, double device_ns) {
  const double distance_ns = device_ns - nearest.device_ns;
  const ClockDrift drift = drift_of(anchors);
  return {nearest.middle_ns() + distance_ns * (1.0 + drift.ppm * kPerMillion),
          nearest.half_width_ns() + std::abs(distance_ns) * drift.uncertainty_ppm * kPerMillion};
}

}  // namespace

ClockDrift drift_of(std::span<const ClockAnchor> anchors) {
  if (anchors.size() < 2 || !(anchors.back().device_ns > anchors.front().device_ns)) {
    return {0.0, kUncomparedPpm};
  }
  // From the first anchor on, or the digits of a double would be spent on the clocks' ages.
  const ClockAnchor& origin = anchors.front();
  double weights = 0.0;
  double mean_x = 0.0;
  double mean_y = 0.0;
  const auto weight = [](const ClockAnchor& anchor) {
    const double width = std::max(kNarrowestNs, anchor.half_width_ns());
    return 1.0 / (width * width);
  };
  const auto x_of = [&](const ClockAnchor& anchor) { return anchor.device_ns - origin.device_ns; };
  // How far the sampler's clock is ahead, which is small: a slope of 1 would swallow it.
  const auto y_of = [&](const ClockAnchor& anchor) {
    return anchor.middle_ns() - origin.middle_ns() - x_of(anchor);
  };
  for (const ClockAnchor& anchor : anchors) {
    weights += weight(anchor);
    mean_x += weight(anchor) * x_of(anchor);
    mean_y += weight(anchor) * y_of(anchor);
  }
  mean_x /= weights;
  mean_y /= weights;
  double xx = 0.0;
  double xy = 0.0;
  double errors = 0.0;
  for (const ClockAnchor& anchor : anchors) {
    const double x = x_of(anchor) - mean_x;
    xx += weight(anchor) * x * x;
    xy += weight(anchor) * x * (y_of(anchor) - mean_y);
    // Every anchor wrong by its half width, in the way that turns the line the most.
    errors += weight(anchor) * std::abs(x) * anchor.half_width_ns();
  }
  return {xy / xx / kPerMillion, errors / xx / kPerMillion};
}

AlignedTime aligned(std::span<const ClockAnchor> anchors, double device_ns) {
  if (anchors.empty()) throw std::invalid_argument("clocks without an anchor cannot be aligned");
  const auto next =
      std::upper_bound(anchors.begin(), anchors.end(), device_ns,
                       [](double at_ns, const ClockAnchor& anchor) { return at_ns < anchor.device_ns; });
  if (next == anchors.begin()) return beyond(anchors, anchors.front(), device_ns);
  if (next == anchors.end()) return beyond(anchors, anchors.back(), device_ns);
  const ClockAnchor& before = *(next - 1);
  const double along = (device_ns - before.device_ns) / (next->device_ns - before.device_ns);
  return {before.middle_ns() + along * (next->middle_ns() - before.middle_ns()),
          (1.0 - along) * before.half_width_ns() + along * next->half_width_ns()};
}

}  // namespace fairlap::telemetry
