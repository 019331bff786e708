#pragma once

#include <vector>

#include "cuda/driver/owned.hpp"

namespace fairlap::cuda {

// Device time between two events that are done. The driver gives milliseconds as a float, which holds a
// nanosecond up to some 16 ms and a ten-millionth of the span beyond.
inline double span_ns(const Driver& driver, CUevent start, CUevent stop) {
  float milliseconds = 0.0F;
  driver.cuEventElapsedTime(&milliseconds, start, stop);
  return static_cast<double>(milliseconds) * 1e6;
}

double median_of(std::vector<double> values);

// The smallest difference between two of the values that is not rounding; 0 when all are equal.
double smallest_step_of(std::vector<double> values);

}  // namespace fairlap::cuda
