#pragma once

#include <string_view>

namespace fairlap::clock {

enum class Source { timestamp_counter, monotonic_raw };

// The name a user reads and types. The counter is called what the processor's manual calls it.
constexpr std::string_view name_of(Source source) {
  if (source == Source::monotonic_raw) return "monotonic_raw";
#if defined(__aarch64__)
  return "cntvct";
#else
  return "tsc";
#endif
}

}  // namespace fairlap::clock
