#pragma once

#include "fakes/cuda/entry.hpp"

namespace fairlap::fakes {

ContextPtr new_context(World& w, int device, bool primary);

// Destroys the context and everything that lives in it; handles into it are dead from then on.
void destroy_context(World& w, Handle context);

// Makes the device's primary context if it is not active.
ContextPtr activate_primary(World& w, int device);
void drop_primary_if_unused(World& w, int device);

}  // namespace fairlap::fakes
