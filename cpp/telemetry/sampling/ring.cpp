#include "telemetry/sampling/ring.hpp"

#include <algorithm>
#include <stdexcept>
#include <string>

namespace fairlap::telemetry {

namespace {

// Refused before the memory is asked for: more would overflow the size, or fill the machine.
std::size_t allowed(std::size_t capacity) {
  if (capacity == 0) throw std::invalid_argument("a ring needs room for at least one reading");
  if (capacity > Ring::kMostReadings) {
    throw std::invalid_argument("a ring has room for at most " + std::to_string(Ring::kMostReadings) +
                                " readings");
  }
  return capacity;
}

}  // namespace

Ring::Ring(std::size_t capacity)
    : memory_(allowed(capacity) * sizeof(Reading)), slots_(memory_.as<Reading>().first(capacity)) {}

bool Ring::push(const Reading& reading) noexcept {
  const std::uint64_t pushed = pushed_.load(std::memory_order_relaxed);
  if (pushed - taken_.load(std::memory_order_acquire) == slots_.size()) {
    overflowed_.fetch_add(1, std::memory_order_relaxed);
    return false;
  }
  slots_[pushed % slots_.size()] = reading;
  pushed_.store(pushed + 1, std::memory_order_release);
  return true;
}

std::size_t Ring::take(std::span<Reading> into) noexcept {
  const std::uint64_t taken = taken_.load(std::memory_order_relaxed);
  const std::uint64_t there = pushed_.load(std::memory_order_acquire) - taken;
  const auto count = std::min<std::size_t>(into.size(), there);
  for (std::size_t i = 0; i < count; ++i) into[i] = slots_[(taken + i) % slots_.size()];
  taken_.store(taken + count, std::memory_order_release);
  return count;
}

std::size_t Ring::size() const noexcept {
  const std::uint64_t taken = taken_.load(std::memory_order_acquire);
  return pushed_.load(std::memory_order_acquire) - taken;
}

}  // namespace fairlap::telemetry
