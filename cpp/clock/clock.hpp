#pragma once

#include <cstdint>
#include <stdexcept>
#include <string>

#include "clock/calibration.hpp"
#include "clock/counter_trust.hpp"
#include "clock/floor.hpp"
#include "clock/monotonic_raw.hpp"
#include "clock/source.hpp"
#include "clock/timestamp_counter.hpp"

namespace fairlap::clock {

class SourceUnavailable : public std::runtime_error {
  using std::runtime_error::runtime_error;
};

// A calibrated clock with a known floor. Made once for each source and kept, since calibrating takes
// tens of milliseconds; nothing here changes afterwards, so threads may share it.
class Clock {
 public:
  // The best trusted source, or the one asked for by name ("tsc" or "cntvct", "monotonic_raw").
  static const Clock& best();
  static const Clock& named(const std::string& name);

  Clock(const Clock&) = delete;  // There is one per source; the hot loop keeps a reference to it.
  Clock& operator=(const Clock&) = delete;

  [[nodiscard]] Source source() const noexcept { return source_; }
  [[nodiscard]] const Calibration& calibration() const noexcept { return calibration_; }
  [[nodiscard]] const Floor& floor() const noexcept { return floor_; }
  [[nodiscard]] const CounterTrust& trust() const noexcept { return trust_; }

  // For callers for which a branch does not matter; the measured loop is a template over the source.
  [[nodiscard]] std::uint64_t start() const noexcept {
    return source_ == Source::timestamp_counter ? TimestampCounter::start() : MonotonicRaw::start();
  }
  [[nodiscard]] std::uint64_t finish() const noexcept {
    return source_ == Source::timestamp_counter ? TimestampCounter::finish() : MonotonicRaw::finish();
  }
  [[nodiscard]] double ns_of(std::uint64_t ticks) const noexcept {
    return static_cast<double>(ticks) * calibration_.ns_per_tick;
  }
  [[nodiscard]] std::uint64_t ticks_of(double ns) const noexcept {
    return static_cast<std::uint64_t>(ns / calibration_.ns_per_tick);
  }

  // How the counter has kept to the operating system's clock since it was calibrated.
  [[nodiscard]] CrossCheck drift_since_calibration() const {
    return cross_check(calibration_, calibration_.origin, take_anchor(source_));
  }

 private:
  explicit Clock(Source source);
  static const Clock& of(Source source);

  Source source_;
  CounterTrust trust_;
  Calibration calibration_;
  Floor floor_;
};

}  // namespace fairlap::clock
