#pragma once

#include <atomic>
#include <cstdint>
#include <limits>
#if !defined(__linux__)
#include <condition_variable>
#include <mutex>
#endif

namespace fairlap::load {

constexpr std::int64_t kNoEnd = std::numeric_limits<std::int64_t>::max();

// What threads sleep on until another one rings. A sleeper first asks how often the bell has rung, then looks
// at what it waits for, then sleeps: a ring in between ends the sleep at once, so none is lost. Ringing
// without sleepers does not enter the kernel.
class Bell {
 public:
  [[nodiscard]] std::uint32_t rings() const noexcept { return rings_.load(); }

  // Until the bell has rung more often than `heard`, or until this moment of CLOCK_MONOTONIC. May return
  // early for no reason.
  void sleep(std::uint32_t heard, std::int64_t until_monotonic_ns = kNoEnd) noexcept;
  void ring_one() noexcept { ring(1); }
  void ring_all() noexcept { ring(std::numeric_limits<int>::max()); }

 private:
  void ring(int sleepers) noexcept;

  std::atomic<std::uint32_t> rings_{0};
  std::atomic<std::uint32_t> sleepers_{0};
#if !defined(__linux__)
  std::mutex mutex_;
  std::condition_variable rung_;
#endif
};

// Lets the kernel end the sleeps of this thread at their moment, not up to 50 us later, to save wake-ups.
void end_sleeps_on_time() noexcept;
void end_sleeps_as_usual() noexcept;

}  // namespace fairlap::load
