#pragma once

#include <cstdint>

namespace fairlap::telemetry {

// Which of the deadlines are also those of a slower lane. By number of the deadline, and not of the round, or
// misses would thin the lane out.
class EveryFew {
 public:
  explicit EveryFew(std::uint64_t deadlines) : every_(deadlines), next_(deadlines - 1) {}

  [[nodiscard]] bool due(std::uint64_t deadline) noexcept {
    if (deadline < next_) return false;
    next_ += ((deadline - next_) / every_ + 1) * every_;
    return true;
  }

 private:
  std::uint64_t every_;
  std::uint64_t next_;
};

}  // namespace fairlap::telemetry
