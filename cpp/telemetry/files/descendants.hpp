#pragma once

#include <array>
#include <cstddef>

namespace fairlap::telemetry {

// The processes below one, found through /proc/PID/task/TID/children without allocating. `complete` is false
// when there are more of them than fit, or when the list could not be read.
struct Descendants {
  std::array<int, 1024> pids{};
  std::size_t count = 0;
  bool complete = true;
};

// `process` is a folder of /proc: "self" or a number.
void find_descendants(const char* proc, const char* process, Descendants& found) noexcept;

// Whether this kernel keeps the lists (CONFIG_PROC_CHILDREN).
bool lists_children(const char* proc) noexcept;

}  // namespace fairlap::telemetry
