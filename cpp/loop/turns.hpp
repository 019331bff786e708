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

// A single timed call whose result is looked at, before the sample at `before` in the order; its number is
// its place in the list.
struct DrawnTurn {
  std::size_t before = 0;
  std::uint32_t work = 0;
};

struct TurnsTaken {
  std::size_t taken = 0;
  std::size_t last = 0;  // the work whose turn it was in the end
  double elapsed_ns = 0.0;
  Interruption why = Interruption::none;
};

// One sample for each place in `order`, which names a work. An untimed call of the same work goes before
// each, since the work before has just used the caches, and before each drawn one. `drawn` is in the order of
// its places. `wall_ns` has as many places as `order`; what a clock that went backwards showed is NaN.
TurnsTaken take_turns(std::span<const Turntaker> works, std::span<const std::uint32_t> order,
                      std::span<const DrawnTurn> drawn, const clock::Clock& clock,
                      std::span<double> wall_ns) noexcept;

}  // namespace fairlap::loop
