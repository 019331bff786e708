#pragma once

#include "fakes/cuda/world.hpp"

namespace fairlap::fakes {

// The live allocation that holds [address, address + bytes), or null.
const Allocation* allocation_at(const World& w, std::uint64_t address, std::uint64_t bytes);

// The same for memory that a client uses; what it gave back before is noted.
const Allocation* memory_used(World& w, std::uint64_t address, std::uint64_t bytes);

// Contents are kept truthfully up to this size; larger buffers have their time modelled only, because
// a cache flush writes hundreds of megabytes per sample.
constexpr std::uint64_t kTruthfulBytes = std::uint64_t{1} << 20;

void free_all_memory(World& w);

}  // namespace fairlap::fakes
