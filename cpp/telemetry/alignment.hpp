#pragma once

#include <cstdint>
#include <span>

namespace fairlap::telemetry {

// One moment on both clocks: the device's, and the sampler's, which lies somewhere between low and high.
struct ClockAnchor {
  double device_ns = 0.0;
  std::int64_t low_ns = 0;
  std::int64_t high_ns = 0;

  [[nodiscard]] double middle_ns() const noexcept {
    return static_cast<double>(low_ns) + static_cast<double>(high_ns - low_ns) / 2.0;
  }
  [[nodiscard]] double half_width_ns() const noexcept { return static_cast<double>(high_ns - low_ns) / 2.0; }
};

// A device's moment on the sampler's clock, and by how much that may be wrong.
struct AlignedTime {
  double time_ns = 0.0;
  double uncertainty_ns = 0.0;
};

// By how much the sampler's clock outruns the device's, as the line through all anchors has it.
struct ClockDrift {
  double ppm = 0.0;
  double uncertainty_ppm = 0.0;
};

// Clocks that nobody compared may differ by this much: what crystals are sold with, doubled.
constexpr double kUncomparedPpm = 200.0;

// Least squares over the anchors, each weighted by how narrow it is. One anchor says nothing of drift.
ClockDrift drift_of(std::span<const ClockAnchor> anchors);

// Between two anchors on the line through both, so that a drift that changes is followed; outside of all on
// the line through all, with an uncertainty that grows with the distance. Anchors are in order of time, and
// there is at least one.
AlignedTime aligned(std::span<const ClockAnchor> anchors, double device_ns);

}  // namespace fairlap::telemetry
