#pragma once

// Readings as a test writes them down.

#include <cstdint>

#include "telemetry/energy/energy.hpp"

namespace fairlap::test {

constexpr std::int64_t kMs = 1'000'000;

inline telemetry::Reading reading_at(std::int64_t at_ms, double value) {
  telemetry::Reading reading;
  reading.time_ns = at_ms * kMs;
  reading.value = value;
  return reading;
}

inline telemetry::Region between(std::int64_t begin_ms, std::int64_t end_ms) {
  return {begin_ms * kMs, end_ms * kMs};
}

}  // namespace fairlap::test
