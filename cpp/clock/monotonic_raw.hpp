#pragma once

#include <ctime>

#include <cstdint>

namespace fairlap::clock {

// The operating system's clock that no time daemon bends. One tick is one nanosecond.
struct MonotonicRaw {
  static std::uint64_t now_ns() noexcept {
    timespec time{};
    clock_gettime(CLOCK_MONOTONIC_RAW, &time);
    return static_cast<std::uint64_t>(time.tv_sec) * 1'000'000'000U +
           static_cast<std::uint64_t>(time.tv_nsec);
  }
  static std::uint64_t start() noexcept { return now_ns(); }
  static std::uint64_t finish() noexcept { return now_ns(); }
};

}  // namespace fairlap::clock
