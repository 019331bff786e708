#include "clock/counter_trust.hpp"

#include <fstream>
#include <sstream>
#include <string>

#include "clock/source.hpp"
#include "clock/timestamp_counter.hpp"

#if defined(__x86_64__)
#include <cpuid.h>
#endif

namespace fairlap::clock {
namespace {

constexpr const char* kClockSourceFolder = "/sys/devices/system/clocksource/clocksource0/";

std::string first_line(const std::string& path) {
  std::ifstream file(path);
  std::string line;
  std::getline(file, line);
  return line;
}

#if defined(__x86_64__)

bool processor_bit(unsigned leaf, unsigned cpuid_register, unsigned bit) {
  unsigned registers[4] = {};
  if (__get_cpuid(leaf, &registers[0], &registers[1], &registers[2], &registers[3]) == 0) return false;
  return ((registers[cpuid_register] >> bit) & 1U) != 0;
}

constexpr unsigned kEcx = 2;
constexpr unsigned kEdx = 3;

bool counter_is_readable() {
  return processor_bit(1, kEdx, 4) && processor_bit(1, kEdx, 26);
}  // rdtsc, lfence
bool counter_is_invariant() { return processor_bit(0x80000007U, kEdx, 8); }
constexpr const char* kKernelNameOfCounter = "tsc";

#else

// The generic timer of aarch64 runs at one rate by architecture.
bool counter_is_readable() { return TimestampCounter::kExists; }
bool counter_is_invariant() { return TimestampCounter::kExists; }
constexpr const char* kKernelNameOfCounter = "arch_sys_counter";

#endif

bool kernel_lists_counter() {
#if defined(__linux__)
  std::istringstream names(first_line(std::string(kClockSourceFolder) + "available_clocksource"));
  for (std::string name; names >> name;) {
    if (name == kKernelNameOfCounter) return true;
  }
  return false;
#else
  return true;  // macOS builds its own clocks on this counter and lists nothing.
#endif
}

}  // namespace

bool under_hypervisor() {
#if defined(__x86_64__)
  return processor_bit(1, kEcx, 31);
#else
  return false;
#endif
}

std::string kernel_clock_source() {
  return first_line(std::string(kClockSourceFolder) + "current_clocksource");
}

CounterTrust counter_trust() {
  const std::string counter(name_of(Source::timestamp_counter));
  if (!counter_is_readable())
    return {false, false, "this processor has no " + counter + " that can be read in order"};
  if (!counter_is_invariant())
    return {true, false, "the " + counter + " changes its rate with the processor's clock"};
  if (!kernel_lists_counter()) {
    return {true, false, "the kernel does not list the " + counter + " among its clock sources"};
  }
  return {true, true, ""};
}

}  // namespace fairlap::clock
