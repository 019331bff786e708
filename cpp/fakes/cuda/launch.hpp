#pragma once

#include "fakes/cuda/entry.hpp"

namespace fairlap::fakes {

// A kernel of a framework: a name and a duration.
Task kernel_task(const char* name, std::int64_t duration_ns);

}  // namespace fairlap::fakes
