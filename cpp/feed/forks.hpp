#pragma once

#include <cstdint>

namespace fairlap::feed {

// How often this process was forked since its first feeder. A child has none of the threads, and a lock
// that one of them held at the fork stays locked in it for ever; so it must know that it is a child.
// A counter kept by a fork handler costs less than asking for the process's number at every hand-over.
std::uint64_t forks_behind_us() noexcept;

}  // namespace fairlap::feed
