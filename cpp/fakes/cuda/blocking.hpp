#pragma once

#include "fakes/cuda/entry.hpp"

namespace fairlap::fakes {

// Blocks the caller until the ops have ended. Moves the virtual clock where the work moves it; where
// only the host can open a gate, waits in real time with the lock given up.
CUresult wait_for(World& w, Lock& lock, const std::vector<OpPtr>& ops);

// CUDA_SUCCESS when all have ended, else CUDA_ERROR_NOT_READY. A host that polls waits a little between its
// looks, so each look in a row that finds work running costs twice as much as the one before, up to 1 ms:
// polling for a second takes a thousand calls, not millions.
CUresult query(World& w, const std::vector<OpPtr>& ops);

}  // namespace fairlap::fakes
