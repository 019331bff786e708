#pragma once

#if defined(__x86_64__)
#include "clock/tsc_x86.hpp"
#elif defined(__aarch64__)
#include "clock/cntvct_arm64.hpp"
#else
#include "clock/monotonic_raw.hpp"

namespace fairlap::clock {

// A processor whose counter we do not know: counter_trust() reports so and this source is never used.
struct TimestampCounter : MonotonicRaw {
  static constexpr bool kExists = false;
};

}  // namespace fairlap::clock
#endif
