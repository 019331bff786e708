#pragma once

#include <cstddef>
#include <cstdint>

#include "loop/work.hpp"

namespace fairlap::loop {

// A run of samples taken without looking at anything but the work and the clock.
struct Slice {
  std::uint64_t* wall_ticks = nullptr;        // where the next sample goes
  std::uint64_t* host_issue_ticks = nullptr;  // used only when the work has a completion
  std::size_t room = 0;                       // samples at most
  std::uint64_t calls_per_sample = 1;
  std::uint64_t length_ticks = 0;  // come back after the sample that passes this
};

struct SliceEnd {
  std::size_t taken = 0;
  std::uint64_t first_ticks = 0;
  std::uint64_t last_ticks = 0;
  Interruption why = Interruption::none;
};

// Between start() and finish() nothing runs but the caller's work: no allocation, no branch on
// configuration, no interpreter but the calls themselves. The two stamps use different fences on
// purpose; see clock/tsc_x86.hpp.
template <class Clock, bool has_completion, class TimedWork>
SliceEnd take_slice(TimedWork& work, const Slice& slice) noexcept {
  SliceEnd end;
  work.enter();
  end.first_ticks = end.last_ticks = Clock::start();
  while (end.taken < slice.room) {
    std::uint64_t issued = 0;
    bool raised = false;
    const std::uint64_t started = Clock::start();
    for (std::uint64_t calls = slice.calls_per_sample; calls != 0 && !raised; --calls) raised = !work.call();
    if constexpr (has_completion) {
      issued = Clock::finish();
      raised = raised || !work.wait();
    }
    raised = !work.drop() || raised;
    const std::uint64_t finished = Clock::finish();
    end.last_ticks = finished;
    if (raised) {
      end.why = Interruption::raised;
      break;
    }
    slice.wall_ticks[end.taken] = finished - started;
    if constexpr (has_completion) slice.host_issue_ticks[end.taken] = issued - started;
    ++end.taken;
    if (work.stop_requested()) {
      end.why = Interruption::stop_requested;
      break;
    }
    if (finished - end.first_ticks >= slice.length_ticks) break;
  }
  const bool stop_requested = work.leave();
  if (stop_requested && end.why == Interruption::none) end.why = Interruption::stop_requested;
  return end;
}

}  // namespace fairlap::loop
