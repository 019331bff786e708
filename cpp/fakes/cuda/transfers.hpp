#pragma once

#include <cstdint>

#include "fakes/fake_cuda.h"

namespace fairlap::fakes {

// What a profiler records of a copy or a fill; times and places are filled in when it runs.
fake_cuda_activity copy_activity(int copy_kind, std::uint64_t bytes);
fake_cuda_activity fill_activity(std::uint64_t bytes, std::uint32_t value);

}  // namespace fairlap::fakes
