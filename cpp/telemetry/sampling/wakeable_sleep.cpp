#include "telemetry/sampling/wakeable_sleep.hpp"

#include <ctime>
#if defined(__linux__)
#include <linux/futex.h>
#include <sys/syscall.h>
#include <unistd.h>
#else
#include <algorithm>
#include <chrono>
#include <thread>
#endif

#include "clock/system_clock.hpp"

namespace fairlap::telemetry {

using clock::kNsPerSecond;

#if defined(__linux__)
void WakeableSleep::until(std::int64_t monotonic_ns) noexcept {
  const timespec end{static_cast<time_t>(monotonic_ns / kNsPerSecond),
                     static_cast<long>(monotonic_ns % kNsPerSecond)};
  // The form with bits takes an absolute time; the kernel checks that no thread has woken us meanwhile.
  syscall(SYS_futex, &woken_, FUTEX_WAIT_BITSET | FUTEX_PRIVATE_FLAG, 0U, &end, nullptr,
          FUTEX_BITSET_MATCH_ANY);
}

void WakeableSleep::wake() noexcept {
  woken_.store(1);
  syscall(SYS_futex, &woken_, FUTEX_WAKE | FUTEX_PRIVATE_FLAG, 1);
}
#else
void WakeableSleep::until(std::int64_t monotonic_ns) noexcept {
  // In pieces, so that ending it never waits for a long period.
  constexpr std::int64_t kLongestPieceNs = 50'000'000;
  const std::int64_t left_ns = monotonic_ns - clock::monotonic_now_ns();
  if (left_ns > 0 && !woken()) {
    std::this_thread::sleep_for(std::chrono::nanoseconds(std::min(left_ns, kLongestPieceNs)));
  }
}

void WakeableSleep::wake() noexcept { woken_.store(1); }
#endif

}  // namespace fairlap::telemetry
