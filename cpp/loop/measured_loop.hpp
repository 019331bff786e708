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

// The stamp that ends one sample begins the next, so that a sample costs one reading of the clock. Between
// two stamps run the caller's work and a handful of instructions that keep the sample before: no allocation,
// no branch on configuration, no interpreter but the calls themselves. Where a sample is prepared for, it
// begins with a stamp of its own.
template <class Clock, bool has_completion, bool has_preparation, class TimedWork>
SliceEnd take_slice(TimedWork& work, const Slice& slice) noexcept {
  std::uint64_t* wall_ticks = slice.wall_ticks;
  std::uint64_t* host_issue_ticks = slice.host_issue_ticks;
  const std::uint64_t* const wall_end = wall_ticks + slice.room;
  const std::uint64_t calls_per_sample = slice.calls_per_sample;
  const std::uint64_t length_ticks = slice.length_ticks;
  Interruption why = Interruption::none;
  work.enter();
  const std::uint64_t first_ticks = Clock::start();
  std::uint64_t last_ticks = first_ticks;
  while (wall_ticks != wall_end) {
    std::uint64_t issued = 0;
    bool raised = false;
    if constexpr (has_preparation) {
      raised = !work.prepare();
      last_ticks = Clock::start();
    }
    const std::uint64_t started = last_ticks;
    for (std::uint64_t calls = calls_per_sample; calls != 0 && !raised; --calls) raised = !work.call();
    if constexpr (has_completion) {
      issued = Clock::finish();
      raised = raised || !work.wait();
    }
    raised = !work.drop() || raised;
    last_ticks = Clock::start();
    if (raised) {
      why = Interruption::raised;
      break;
    }
    *wall_ticks++ = last_ticks - started;
    if constexpr (has_completion) *host_issue_ticks++ = issued - started;
    if (work.stop_requested()) {
      why = Interruption::stop_requested;
      break;
    }
    if (last_ticks - first_ticks >= length_ticks) break;
  }
  const bool stop_requested = work.leave();
  if (stop_requested && why == Interruption::none) why = Interruption::stop_requested;
  return {.taken = static_cast<std::size_t>(wall_ticks - slice.wall_ticks),
          .first_ticks = first_ticks,
          .last_ticks = last_ticks,
          .why = why};
}

}  // namespace fairlap::loop
