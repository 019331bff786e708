#include "clock/calibration.hpp"

#include "clock/monotonic_raw.hpp"
#include "clock/timestamp_counter.hpp"

namespace fairlap::clock {
namespace {

// Reading both clocks costs about 0.1 us, so 20 ms leaves about 5 parts per million open.
constexpr std::uint64_t kCalibrationNs = 20'000'000;
constexpr int kReadingsPerAnchor = 15;

double ppm_of(double part, double whole) { return whole > 0.0 ? part / whole * 1e6 : 0.0; }

}  // namespace

Anchor take_anchor(Source source) {
  Anchor best;
  for (int reading = 0; reading < kReadingsPerAnchor; ++reading) {
    const std::uint64_t before_ns = MonotonicRaw::now_ns();
    const std::uint64_t ticks =
        source == Source::timestamp_counter ? TimestampCounter::start() : MonotonicRaw::start();
    const std::uint64_t after_ns = MonotonicRaw::now_ns();
    const std::uint64_t bracket_ns = after_ns - before_ns;
    if (reading == 0 || bracket_ns < best.bracket_ns) best = {ticks, before_ns + bracket_ns / 2, bracket_ns};
  }
  return best;
}

Calibration calibrate(Source source) {
  const Anchor origin = take_anchor(source);
  if (source == Source::monotonic_raw) return {1.0, 0.0, origin};
  while (MonotonicRaw::now_ns() - origin.os_ns < kCalibrationNs) {
  }
  const Anchor end = take_anchor(source);
  const auto os_ns = static_cast<double>(end.os_ns - origin.os_ns);
  const auto ticks = static_cast<double>(end.ticks - origin.ticks);
  const auto open_ns = static_cast<double>(origin.bracket_ns + end.bracket_ns) / 2;
  return {os_ns / ticks, ppm_of(open_ns, os_ns), origin};
}

CrossCheck cross_check(const Calibration& calibration, const Anchor& from, const Anchor& to) {
  const auto os_ns = static_cast<double>(to.os_ns - from.os_ns);
  // Signed, so that a counter that went backwards shows as an enormous drift and not as overflow.
  const auto ticks = static_cast<double>(static_cast<std::int64_t>(to.ticks - from.ticks));
  const auto open_ns = static_cast<double>(from.bracket_ns + to.bracket_ns) / 2;
  return {os_ns / 1e9, ppm_of(ticks * calibration.ns_per_tick - os_ns, os_ns),
          calibration.uncertainty_ppm + ppm_of(open_ns, os_ns)};
}

}  // namespace fairlap::clock
