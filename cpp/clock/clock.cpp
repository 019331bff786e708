#include "clock/clock.hpp"

namespace fairlap::clock {

Clock::Clock(Source source)
    : source_(source),
      trust_(counter_trust()),
      calibration_(calibrate(source)),
      floor_(measure_floor(source, calibration_.ns_per_tick)) {}

const Clock& Clock::of(Source source) {
  if (source == Source::timestamp_counter) {
    static const Clock counter(Source::timestamp_counter);
    return counter;
  }
  static const Clock raw(Source::monotonic_raw);
  return raw;
}

const Clock& Clock::best() {
  return of(counter_trust().trusted ? Source::timestamp_counter : Source::monotonic_raw);
}

const Clock& Clock::named(const std::string& name) {
  if (name == name_of(Source::monotonic_raw)) return of(Source::monotonic_raw);
  const std::string counter(name_of(Source::timestamp_counter));
  if (name != counter) {
    throw std::invalid_argument("there is no clock source named '" + name + "'; this machine knows " +
                                counter + " and monotonic_raw");
  }
  const CounterTrust trust = counter_trust();
  if (!trust.readable)
    throw SourceUnavailable("clock source " + counter + " cannot be used: " + trust.reason);
  return of(Source::timestamp_counter);
}

}  // namespace fairlap::clock
