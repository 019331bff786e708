#pragma once

#include <cstdint>

#include "clock/source.hpp"

namespace fairlap::clock {

// One moment read on both clocks. The counter was read somewhere inside the bracket.
struct Anchor {
  std::uint64_t ticks = 0;
  std::uint64_t os_ns = 0;
  std::uint64_t bracket_ns = 0;
};

// Reads both clocks several times and keeps the tightest pair, so that an interrupt does no harm.
Anchor take_anchor(Source source);

struct Calibration {
  double ns_per_tick = 1.0;
  double uncertainty_ppm = 0.0;  // what the brackets at both ends leave open
  Anchor origin;
};

Calibration calibrate(Source source);

// The counter held against the operating system's clock over a stretch of real use.
struct CrossCheck {
  double elapsed_s = 0.0;
  double drift_ppm = 0.0;       // positive: the counter, as calibrated, runs fast
  double resolution_ppm = 0.0;  // a smaller drift cannot be distinguished from reading error
};

CrossCheck cross_check(const Calibration& calibration, const Anchor& from, const Anchor& to);

}  // namespace fairlap::clock
