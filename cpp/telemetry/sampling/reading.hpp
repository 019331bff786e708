#pragma once

#include <cstdint>

namespace fairlap::telemetry {

enum class ReadingState : std::uint32_t {
  value,        // `value` holds what the source reported
  failed,       // this one reading failed, with the source's own code
  source_lost,  // the source is gone for good, and everything after this moment is unknown
};

// One number that a source gave at one moment. Plain, of fixed size, so that a ring of them needs no
// allocation. A reading that failed has no value: NaN, never 0.
struct Reading {
  std::int64_t time_ns = 0;         // middle of the read, on the engine's clock since its calibration
  std::int64_t width_ns = 0;        // how long the read took; the moment is somewhere inside
  std::int64_t source_time_us = 0;  // the source's own timestamp, microseconds since 1970; 0: it has none
  double value = 0.0;
  std::uint32_t source = 0;
  std::uint32_t field = 0;
  ReadingState state = ReadingState::value;
  std::int32_t code = 0;  // of a failure: errno, or NVML's code
};
static_assert(sizeof(Reading) == 48);

}  // namespace fairlap::telemetry
