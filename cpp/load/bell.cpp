#include "load/bell.hpp"

#include <ctime>
#if defined(__linux__)
#include <linux/futex.h>
#include <sched.h>
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

void ask_for_short_slices() noexcept {
  // The first version of the kernel's struct sched_attr, which glibc 2.41 is the first to declare.
  struct {
    std::uint32_t size, policy;
    std::uint64_t flags;
    std::int32_t nice;
    std::uint32_t priority;
    std::uint64_t runtime_ns, deadline_ns, period_ns;
  } attributes{};
  if (syscall(SYS_sched_getattr, 0, &attributes, sizeof(attributes), 0U) != 0) return;
  if (attributes.policy != SCHED_OTHER) return;
  constexpr std::uint64_t kShortestSliceNs = 100'000;
  attributes.runtime_ns = kShortestSliceNs;
  syscall(SYS_sched_setattr, 0, &attributes, 0U);
}

int current_core() noexcept { return sched_getcpu(); }

bool stay_on(int core) noexcept {
  cpu_set_t only;
  CPU_ZERO(&only);
  CPU_SET(core, &only);
  return core >= 0 && sched_setaffinity(0, sizeof(only), &only) == 0;
}

bool stay_off(int core) noexcept {
  cpu_set_t allowed;
  if (core < 0 || sched_getaffinity(0, sizeof(allowed), &allowed) != 0) return false;
  CPU_CLR(core, &allowed);
  return CPU_COUNT(&allowed) > 0 && sched_setaffinity(0, sizeof(allowed), &allowed) == 0;
}

void also_run_on(const std::vector<int>& cores) noexcept {
  cpu_set_t allowed;
  if (cores.empty() || sched_getaffinity(0, sizeof(allowed), &allowed) != 0) return;
  for (const int core : cores) CPU_SET(static_cast<std::size_t>(core), &allowed);
  sched_setaffinity(0, sizeof(allowed), &allowed);
}

void run_beside(const std::vector<int>& cores) noexcept {
  cpu_set_t had;
  cpu_set_t others;
  if (sched_getaffinity(0, sizeof(had), &had) != 0) return;
  CPU_ZERO(&others);
  for (const int core : cores) {
    if (!CPU_ISSET(static_cast<std::size_t>(core), &had)) CPU_SET(static_cast<std::size_t>(core), &others);
  }
  if (CPU_COUNT(&others) > 0) sched_setaffinity(0, sizeof(others), &others);
}
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
void ask_for_short_slices() noexcept {}
int current_core() noexcept { return -1; }
bool stay_on(int) noexcept { return false; }
bool stay_off(int) noexcept { return false; }
void also_run_on(const std::vector<int>&) noexcept {}
void run_beside(const std::vector<int>&) noexcept {}
#endif

}  // namespace fairlap::load
