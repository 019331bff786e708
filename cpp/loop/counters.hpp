#pragma once

#include <cstdint>

namespace fairlap::loop {

// What the kernel did to one thread or to the whole process, as running totals.
struct Disturbances {
  std::int64_t minor_faults = 0;
  std::int64_t major_faults = 0;
  std::int64_t voluntary_switches = 0;
  std::int64_t involuntary_switches = 0;
  std::int64_t cpu_ns = 0;
};

// One reading of everything that explains why two equal runs differ. A framework's own threads fault
// and switch too, so the process is read as well as the calling thread.
struct Counters {
  Disturbances thread;
  Disturbances process;
  std::int64_t cpu = -1;  // the core this was read on; -1 where the system does not report it

  static Counters read() noexcept;
};

// False where the system counts faults and switches for the whole process only.
bool counts_threads_apart() noexcept;

// Time the hypervisor gave to others, summed over cores, in steps of 10 ms; -1 where unknown.
std::int64_t stolen_ns();

}  // namespace fairlap::loop
