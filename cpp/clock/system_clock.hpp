#pragma once

#include <ctime>

#include <cstdint>

namespace fairlap::clock {

constexpr std::int64_t kNsPerSecond = 1'000'000'000;

inline std::int64_t now_of_ns(clockid_t clock) noexcept {
  timespec time{};
  clock_gettime(clock, &time);
  return static_cast<std::int64_t>(time.tv_sec) * kNsPerSecond + time.tv_nsec;
}

// The clock by which the kernel ends a sleep.
inline std::int64_t monotonic_now_ns() noexcept { return now_of_ns(CLOCK_MONOTONIC); }

// What this thread has run so far.
inline std::int64_t thread_cpu_ns() noexcept { return now_of_ns(CLOCK_THREAD_CPUTIME_ID); }

}  // namespace fairlap::clock
