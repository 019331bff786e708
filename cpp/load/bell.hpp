#pragma once

#include <atomic>
#include <cstdint>
#include <limits>
#include <vector>
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

// Asks the scheduler to run this thread in slices of 0.1 ms, in exchange for being let on a busy core
// earlier. Linux 6.12 and later; others run it as before.
void ask_for_short_slices() noexcept;

// The core that this thread is on; negative where that is not known.
[[nodiscard]] int current_core() noexcept;

// From now on this thread runs on this core alone, or on the others of its process. False where it cannot.
bool stay_on(int core) noexcept;
bool stay_off(int core) noexcept;

// From now on this thread may run on these cores too, or on them without those it had. It stays where it was
// if the system refuses, or if nothing is left.
void also_run_on(const std::vector<int>& cores) noexcept;
void run_beside(const std::vector<int>& cores) noexcept;

}  // namespace fairlap::load
