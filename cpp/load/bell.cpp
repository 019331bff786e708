#include "load/bell.hpp"

#include <ctime>
#if defined(__linux__)
#include <linux/futex.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>
#else
#include <chrono>
#endif

#include "clock/system_clock.hpp"

namespace fairlap::load {

using clock::kNsPerSecond;

#if defined(__linux__)
void Bell::sleep(std::uint32_t heard, std::int64_t until_monotonic_ns) noexcept {
  const timespec end{static_cast<time_t>(until_monotonic_ns / kNsPerSecond),
                     static_cast<long>(until_monotonic_ns % kNsPerSecond)};
  sleepers_.fetch_add(1);
  // The form with bits takes an absolute time. The kernel compares the count once more before it puts us to
  // sleep.
  syscall(SYS_futex, &rings_, FUTEX_WAIT_BITSET | FUTEX_PRIVATE_FLAG, heard,
          until_monotonic_ns == kNoEnd ? nullptr : &end, nullptr, FUTEX_BITSET_MATCH_ANY);
  sleepers_.fetch_sub(1);
}

void Bell::ring(int sleepers) noexcept {
  rings_.fetch_add(1);
  if (sleepers_.load() == 0) return;
  syscall(SYS_futex, &rings_, FUTEX_WAKE | FUTEX_PRIVATE_FLAG, sleepers);
}

void end_sleeps_on_time() noexcept { prctl(PR_SET_TIMERSLACK, 1UL, 0UL, 0UL, 0UL); }
void end_sleeps_as_usual() noexcept { prctl(PR_SET_TIMERSLACK, 0UL, 0UL, 0UL, 0UL); }

#else
void Bell::sleep(std::uint32_t heard, std::int64_t until_monotonic_ns) noexcept {
  std::unique_lock lock(mutex_);
  sleepers_.fetch_add(1);
  const auto rung = [&] { return rings_.load() != heard; };
  if (until_monotonic_ns == kNoEnd) {
    rung_.wait(lock, rung);
  } else {
    rung_.wait_for(lock, std::chrono::nanoseconds(until_monotonic_ns - clock::monotonic_now_ns()), rung);
  }
  sleepers_.fetch_sub(1);
}

void Bell::ring(int sleepers) noexcept {
  rings_.fetch_add(1);
  if (sleepers_.load() == 0) return;
  const std::lock_guard lock(mutex_);
  if (sleepers == 1) {
    rung_.notify_one();
  } else {
    rung_.notify_all();
  }
}

void end_sleeps_on_time() noexcept {}
void end_sleeps_as_usual() noexcept {}
#endif

}  // namespace fairlap::load
