#pragma once

#include <cstdint>
#include <vector>

#include "clock/source.hpp"

namespace fairlap::clock {

// What a clock can and cannot resolve, measured on this machine.
struct Floor {
  double quantum_ns = 0.0;   // the step in which readings grow
  double overhead_ns = 0.0;  // what taking a stamp costs a loop
  double bias_ns = 0.0;      // what two stamps in a row read around nothing
};

Floor measure_floor(Source source, double ns_per_tick);

// The step in which sorted readings grow, in ticks. A virtual machine may scale the counter, so that
// a step of 24.45 ticks shows as 24 or 25: values one tick apart count as one.
double quantum_of(const std::vector<std::uint64_t>& sorted_readings);

// The mean of the middle half: resolves less than a quantum, and an interrupt cannot move it.
double midmean_of(const std::vector<std::uint64_t>& sorted_readings);

}  // namespace fairlap::clock
