#pragma once

#include <memory>
#include <span>

namespace fairlap::bindings {

// The samples of one quantity in a record, read-only and without a copy, for memoryview and NumPy.
struct Samples {
  std::shared_ptr<const void> keeps_alive;
  std::span<const double> values;
};

}  // namespace fairlap::bindings
