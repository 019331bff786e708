#pragma once

#include <cstdint>

namespace fairlap::clock {

// isb keeps the counter from being read ahead of the instructions before it; the second isb at the
// start keeps the timed work behind the reading (Arm ARM, D12.1 on CNTVCT_EL0).
struct TimestampCounter {
  static constexpr bool kExists = true;

  static std::uint64_t start() noexcept {
    std::uint64_t ticks;
    asm volatile("isb\n\tmrs %0, cntvct_el0\n\tisb" : "=r"(ticks)::"memory");
    return ticks;
  }
  static std::uint64_t finish() noexcept {
    std::uint64_t ticks;
    asm volatile("isb\n\tmrs %0, cntvct_el0" : "=r"(ticks)::"memory");
    return ticks;
  }
};

}  // namespace fairlap::clock
