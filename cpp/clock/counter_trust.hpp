#pragma once

#include <string>

namespace fairlap::clock {

// Whether the processor's counter may be used as a clock, and why not.
struct CounterTrust {
  bool readable = false;  // the instruction exists, so it can be used on request
  bool trusted = false;   // it runs at one rate, and the kernel lists it as a good clock source
  std::string reason;     // in words, when it is not trusted
};

CounterTrust counter_trust();

// True inside a virtual machine, as far as the processor reports it.
bool under_hypervisor();

// The kernel's clock source at this moment; empty where the system does not report it. A kernel that finds
// its counter unstable switches away from it, which is how a measurement learns of it.
std::string kernel_clock_source();

}  // namespace fairlap::clock
