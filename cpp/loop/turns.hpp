#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "clock/clock.hpp"
#include "loop/run.hpp"

namespace fairlap::loop {

// One work among several that take turns.
struct Turntaker {
  SliceTaker* taker = nullptr;
  std::uint64_t calls_per_sample = 1;
};

struct TurnsTaken {
  std::size_t taken = 0;
  std::size_t last = 0;  // the work whose turn it was in the end
  double elapsed_ns = 0.0;
  Interruption why = Interruption::none;
};

// One sample for each place in `order`, which names a work. An untimed call of the same work goes before
// each, since the work before has just used the caches. `wall_ns` has as many places as `order`; what a clock
// that went backwards showed is NaN.
TurnsTaken take_turns(std::span<const Turntaker> works, std::span<const std::uint32_t> order,
                      const clock::Clock& clock, std::span<double> wall_ns) noexcept;

}  // namespace fairlap::loop
