#include "load/load_clock.hpp"

#include "clock/system_clock.hpp"
#include "load/bell.hpp"

namespace fairlap::load {

std::int64_t LoadClock::monotonic_at(double load_ns) const noexcept {
  constexpr double kLongestSleepNs = 1e15;  // eleven days; a sleep may end early
  const double ahead_ns = load_ns - now_ns();
  if (ahead_ns > kLongestSleepNs) return kNoEnd;
  return clock::monotonic_now_ns() + static_cast<std::int64_t>(ahead_ns);
}

}  // namespace fairlap::load
