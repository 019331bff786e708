#include "loop/turns.hpp"

#include <limits>

namespace fairlap::loop {

TurnsTaken take_turns(std::span<const Turntaker> works, std::span<const std::uint32_t> order,
                      const clock::Clock& clock, std::span<double> wall_ns) noexcept {
  TurnsTaken out;
  const std::uint64_t begin = clock.start();
  for (const std::uint32_t place : order) {
    out.last = place;
    const Turntaker& work = works[place];
    std::uint64_t ticks = 0;
    std::uint64_t issue_ticks = 0;
    const auto sample_of = [&](std::uint64_t calls) {
      const Slice slice{.wall_ticks = &ticks,
                        .host_issue_ticks = &issue_ticks,
                        .room = 1,
                        .calls_per_sample = calls,
                        .length_ticks = 0};
      out.why = work.taker->take(slice).why;
    };
    sample_of(1);
    if (out.why == Interruption::none) sample_of(work.calls_per_sample);
    if (out.why != Interruption::none) break;
    const double ns = clock.calibration().ns_per_tick * static_cast<double>(static_cast<std::int64_t>(ticks));
    const auto calls = static_cast<double>(work.calls_per_sample);
    wall_ns[out.taken++] =
        ns < 0.0 ? std::numeric_limits<double>::quiet_NaN() : (ns - clock.floor().bias_ns) / calls;
  }
  out.elapsed_ns = clock.ns_of(clock.finish() - begin);
  return out;
}

}  // namespace fairlap::loop
