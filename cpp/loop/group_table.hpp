#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "loop/counters.hpp"
#include "loop/prefaulted_memory.hpp"

namespace fairlap::loop {

// What happened during one group of neighbouring samples. Plain integers in a row, so that NumPy sees
// the table without a copy. The names are what Python shows; see bindings/register_loop.cpp.
struct Group {
  std::int64_t first_sample = 0;
  std::int64_t samples = 0;
  std::int64_t start_ns = 0;    // since the first sample of the run
  std::int64_t elapsed_ns = 0;  // stamps and bookkeeping between samples included
  Disturbances thread;
  Disturbances process;
  std::int64_t migrations = 0;  // times the thread was found on another core than before
  std::int64_t cpu = -1;
};

// A table of fixed size that never refuses a slice of the run. When it is full, neighbouring groups are
// merged and every later group covers twice as many slices, so that an hour fits as well as a second.
class GroupTable {
 public:
  explicit GroupTable(std::size_t capacity);

  void add(const Group& slice) noexcept;
  [[nodiscard]] std::span<const Group> groups() const noexcept {
    return memory_.as<const Group>().first(used_);
  }

 private:
  void merge_neighbours() noexcept;

  PrefaultedMemory memory_;
  std::size_t used_ = 0;
  std::size_t slices_per_group_ = 1;
  std::size_t slices_in_last_ = 0;
};

// Adds a later group to an earlier one.
void append(Group& group, const Group& later) noexcept;

// The change between two readings, as one slice of a group.
Group slice_between(const Counters& before, const Counters& after) noexcept;

}  // namespace fairlap::loop
