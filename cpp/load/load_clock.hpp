#pragma once

#include <cstdint>

#include "clock/clock.hpp"

namespace fairlap::load {

// Nanoseconds since the start of a load, on the engine's clock.
class LoadClock {
 public:
  explicit LoadClock(const clock::Clock& on) noexcept : on_(on), start_(on.start()) {}

  // The load starts so long from now. Called before the threads that ask for the time are let go.
  void start_in(double ns) noexcept { start_ = on_.finish() + on_.ticks_of(ns); }

  [[nodiscard]] double now_ns() const noexcept {
    const auto ticks = static_cast<std::int64_t>(on_.finish() - start_);
    return static_cast<double>(ticks) * on_.calibration().ns_per_tick;
  }

  // The same moment on CLOCK_MONOTONIC, by which the kernel ends a sleep. The two clocks are read again for
  // each sleep, so that they cannot drift apart.
  [[nodiscard]] std::int64_t monotonic_at(double load_ns) const noexcept;

 private:
  const clock::Clock& on_;
  std::uint64_t start_;
};

// For loops that spin: leaves more of the core to its other hardware thread.
inline void relax() noexcept {
#if defined(__x86_64__)
  __builtin_ia32_pause();
#elif defined(__aarch64__)
  asm volatile("yield");
#endif
}

}  // namespace fairlap::load
