#pragma once

#include <vector>

#include "telemetry/reading.hpp"

namespace fairlap {

// Readings that were collected, as they lie, for NumPy.
struct Readings {
  std::vector<telemetry::Reading> rows;
};

}  // namespace fairlap
