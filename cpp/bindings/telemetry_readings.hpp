#pragma once

#include <vector>

#include "telemetry/sampling/reading.hpp"

namespace fairlap {

// Collected readings, without a copy, for NumPy.
struct Readings {
  std::vector<telemetry::Reading> rows;
};

}  // namespace fairlap
