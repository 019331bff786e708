#include "loop/turns.hpp"

#include <limits>

namespace fairlap::loop {
namespace {

struct Sample {
  double ns = 0.0;  // of all its calls
  Interruption why = Interruption::none;
};

Sample sample_of(SliceTaker& taker, std::uint64_t calls, const clock::Clock& clock) noexcept {
  std::uint64_t ticks = 0;
  std::uint64_t issue_ticks = 0;
  const Slice slice{.wall_ticks = &ticks,
                    .host_issue_ticks = &issue_ticks,
                    .room = 1,
                    .calls_per_sample = calls,
                    .length_ticks = 0};
  const Interruption why = taker.take(slice).why;
  const double ns = clock.calibration().ns_per_tick * static_cast<double>(static_cast<std::int64_t>(ticks));
  return {.ns = ns < 0.0 ? std::numeric_limits<double>::quiet_NaN() : ns - clock.floor().bias_ns, .why = why};
}

Interruption drawn_call(SliceTaker& taker, std::size_t number, const clock::Clock& clock) noexcept {
  const Interruption warmed = sample_of(taker, 1, clock).why;
  if (warmed != Interruption::none) return warmed;
  if (!taker.begin_drawn(number)) return Interruption::raised;
  const Sample found = sample_of(taker, 1, clock);
  const bool looked_at = taker.end_drawn(number, found.ns);
  if (found.why != Interruption::none) return found.why;
  return looked_at ? Interruption::none : Interruption::raised;
}

}  // namespace

TurnsTaken take_turns(std::span<const Turntaker> works, std::span<const std::uint32_t> order,
                      std::span<const DrawnTurn> drawn, const clock::Clock& clock,
                      std::span<double> wall_ns) noexcept {
  TurnsTaken out;
  std::size_t next_drawn = 0;
  const std::uint64_t begin = clock.start();
  for (std::size_t place = 0; place < order.size() && out.why == Interruption::none; ++place) {
    for (; next_drawn < drawn.size() && drawn[next_drawn].before <= place; ++next_drawn) {
      out.last = drawn[next_drawn].work;
      out.why = drawn_call(*works[out.last].taker, next_drawn, clock);
      if (out.why != Interruption::none) break;
    }
    if (out.why != Interruption::none) break;
    out.last = order[place];
    const Turntaker& work = works[out.last];
    out.why = sample_of(*work.taker, 1, clock).why;
    if (out.why != Interruption::none) break;
    const Sample found = sample_of(*work.taker, work.calls_per_sample, clock);
    out.why = found.why;
    if (out.why == Interruption::none)
      wall_ns[out.taken++] = found.ns / static_cast<double>(work.calls_per_sample);
  }
  out.elapsed_ns = clock.ns_of(clock.finish() - begin);
  return out;
}

}  // namespace fairlap::loop
