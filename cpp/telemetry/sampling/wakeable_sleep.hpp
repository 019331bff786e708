#pragma once

#include <atomic>
#include <cstdint>

namespace fairlap::telemetry {

// A sleep until a moment of CLOCK_MONOTONIC that another thread can end at once. Waiting is one call of the
// kernel. It has no lock and counts no waiters, so that a forked child, in which the sleeper is missing, may
// destroy it.
class WakeableSleep {
 public:
  // Returns when the time has come or wake() was called; it may also return early for no reason.
  void until(std::int64_t monotonic_ns) noexcept;
  void wake() noexcept;
  void rearm() noexcept { woken_.store(0); }
  [[nodiscard]] bool woken() const noexcept { return woken_.load() != 0; }

 private:
  std::atomic<std::uint32_t> woken_{0};
};

}  // namespace fairlap::telemetry
