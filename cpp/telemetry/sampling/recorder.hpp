#pragma once

#include <cstdint>
#include <limits>

#include "clock/clock.hpp"
#include "telemetry/sampling/ring.hpp"

namespace fairlap::telemetry {

// When something was read, on the engine's clock.
struct Moment {
  std::int64_t time_ns = 0;
  std::int64_t width_ns = 0;
};

// Nanoseconds of the engine's clock since it was calibrated.
inline std::int64_t engine_now_ns(const clock::Clock& on_clock) noexcept {
  return static_cast<std::int64_t>(on_clock.ns_of(on_clock.finish() - on_clock.calibration().origin.ticks));
}

// Where a source puts what it read. It stamps the time and adds the source's number.
class Recorder {
 public:
  Recorder(Ring& ring, const clock::Clock& on_clock) : ring_(&ring), clock_(&on_clock) {}

  void speak_for(std::uint32_t source) noexcept { source_ = source; }

  // Does the read and returns when that was.
  template <class Read>
  Moment timed(Read&& read) noexcept {
    const std::int64_t before_ns = engine_now_ns(*clock_);
    read();
    const std::int64_t after_ns = engine_now_ns(*clock_);
    return {before_ns + (after_ns - before_ns) / 2, after_ns - before_ns};
  }

  void put(const Moment& when, std::uint32_t field, double value, std::int64_t source_time_us = 0) noexcept {
    push(when, field, value, source_time_us, ReadingState::value, 0);
  }
  void put_failed(const Moment& when, std::uint32_t field, std::int32_t code) noexcept {
    push(when, field, std::numeric_limits<double>::quiet_NaN(), 0, ReadingState::failed, code);
  }
  void put_lost(const Moment& when, std::uint32_t field, std::int32_t code) noexcept {
    push(when, field, std::numeric_limits<double>::quiet_NaN(), 0, ReadingState::source_lost, code);
  }

 private:
  void push(const Moment& when, std::uint32_t field, double value, std::int64_t source_time_us,
            ReadingState state, std::int32_t code) noexcept {
    ring_->push({.time_ns = when.time_ns,
                 .width_ns = when.width_ns,
                 .source_time_us = source_time_us,
                 .value = value,
                 .source = source_,
                 .field = field,
                 .state = state,
                 .code = code});
  }

  Ring* ring_;
  const clock::Clock* clock_;
  std::uint32_t source_ = 0;
};

}  // namespace fairlap::telemetry
