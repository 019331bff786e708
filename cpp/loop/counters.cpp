#include "loop/counters.hpp"

#include <sched.h>
#include <sys/resource.h>
#include <unistd.h>

#include <fstream>
#include <string>

#include "clock/system_clock.hpp"

namespace fairlap::loop {
namespace {

Disturbances disturbances(int whose, clockid_t cpu_clock) noexcept {
  rusage usage{};
  getrusage(static_cast<decltype(RUSAGE_SELF)>(whose), &usage);
  return {.minor_faults = usage.ru_minflt,
          .major_faults = usage.ru_majflt,
          .voluntary_switches = usage.ru_nvcsw,
          .involuntary_switches = usage.ru_nivcsw,
          .cpu_ns = clock::now_of_ns(cpu_clock)};
}

}  // namespace

bool counts_threads_apart() noexcept {
#if defined(__linux__)
  return true;
#else
  return false;
#endif
}

Counters Counters::read() noexcept {
  Counters now;
  now.process = disturbances(RUSAGE_SELF, CLOCK_PROCESS_CPUTIME_ID);
#if defined(__linux__)
  constexpr int kCallingThread = 1;  // RUSAGE_THREAD, which the headers hide without _GNU_SOURCE
  now.thread = disturbances(kCallingThread, CLOCK_THREAD_CPUTIME_ID);
  now.cpu = sched_getcpu();
#else
  now.thread = now.process;
  now.thread.cpu_ns = clock::thread_cpu_ns();
#endif
  return now;
}

std::int64_t stolen_ns() {
  std::ifstream file("/proc/stat");
  std::string label;
  std::int64_t user, nice, system, idle, iowait, irq, softirq, steal;
  if (!(file >> label >> user >> nice >> system >> idle >> iowait >> irq >> softirq >> steal)) return -1;
  return steal * (1'000'000'000 / sysconf(_SC_CLK_TCK));
}

}  // namespace fairlap::loop
