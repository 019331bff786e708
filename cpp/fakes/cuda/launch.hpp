#pragma once

#include "fakes/cuda/entry.hpp"

namespace fairlap::fakes {

// A kernel of a framework: a name and a duration.
Task kernel_task(const char* name, std::int64_t duration_ns);

// Reports to the listener that something is launched, before it is known whether it can be.
void announce_launch(World& w, const char* function, Handle stream);

}  // namespace fairlap::fakes
