#pragma once

#include "fakes/cuda/world.hpp"

// What a client uses after it gave it back: events, streams, memory, and modules with their functions. The
// real driver may answer with an error, which destructors ignore, or do whatever a new object at the same
// address does.
namespace fairlap::fakes {

// The call that this thread makes, for the report.
void set_call(const char* function);

void gave_back(World& w, const char* kind, Handle handle);
void gave_back_memory(World& w, std::uint64_t address, std::uint64_t bytes);
// New memory may lie where old memory lay.
void took_memory(World& w, std::uint64_t address, std::uint64_t bytes);

// To be called where a handle or an address that a client used is not known.
void note_use(World& w, Handle handle);
void note_use_of_memory(World& w, std::uint64_t address);

}  // namespace fairlap::fakes
