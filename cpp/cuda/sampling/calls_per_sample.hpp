#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <optional>

namespace fairlap::cuda {

// More launches than this behind one gate may outgrow the driver's queue, whatever the device.
constexpr std::uint64_t kCallsPerSampleAtMost = 512;

// How many calls one interval needs so that the event quantum is at most `share` of it. `span_of(calls)`
// gives the span of an interval with that many calls, or nothing when so many cannot be taken, which ends the
// search at the number before.
template <class SpanOf>
std::uint64_t find_calls_per_sample(double quantum_ns, double share, SpanOf&& span_of) {
  const double needed_ns = quantum_ns / share;
  std::uint64_t calls = 1;
  std::uint64_t fitting = 1;
  while (true) {
    const std::optional<double> span_ns = span_of(calls);
    if (!span_ns) return fitting;
    fitting = calls;
    if (*span_ns >= needed_ns || calls == kCallsPerSampleAtMost) return calls;
    const double growth = *span_ns > 0.0 ? needed_ns / *span_ns : 2.0;
    const double wanted = std::ceil(static_cast<double>(calls) * std::clamp(growth, 1.0, 8.0));
    calls = std::clamp(static_cast<std::uint64_t>(wanted), calls + 1, kCallsPerSampleAtMost);
  }
}

}  // namespace fairlap::cuda
