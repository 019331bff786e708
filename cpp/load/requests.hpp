#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

namespace fairlap::load {

// The requests of a load, one column for each fact, all of one length. They are issued in their order, so a
// request is its place. Times are nanoseconds since the start; NaN, and -1 for worker and group, where it did
// not happen.
struct Requests {
  std::span<const double> due_ns;  // ascending
  std::span<const std::uint32_t> items;
  std::span<double> issued_ns;
  std::span<double> started_ns;
  std::span<double> completed_ns;
  std::span<std::int32_t> worker;
  std::span<std::int32_t> group;

  [[nodiscard]] std::size_t count() const noexcept { return due_ns.size(); }
};

// Requests that one worker serves together. The queue is served in order, so they are neighbours.
struct Group {
  std::uint32_t first = 0;
  std::uint32_t count = 0;
  std::uint32_t number = 0;  // in the order in which groups were taken
};

}  // namespace fairlap::load
