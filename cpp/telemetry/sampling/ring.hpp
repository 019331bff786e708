#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <span>

#include "loop/prefaulted_memory.hpp"
#include "telemetry/sampling/reading.hpp"

namespace fairlap::telemetry {

// Readings on their way from the one thread that takes them to the one that collects them. All memory is
// there from the start. When they are not collected, new readings are dropped and counted: what is already
// inside stays whole.
class Ring {
 public:
  static constexpr std::size_t kMostReadings = std::size_t{1} << 24U;  // 768 MiB

  explicit Ring(std::size_t capacity);

  Ring(const Ring&) = delete;  // Two threads hold on to it.
  Ring& operator=(const Ring&) = delete;

  // For the producer only. False when there was no room.
  bool push(const Reading& reading) noexcept;

  // For the collector only: moves the oldest readings out and returns how many there were.
  std::size_t take(std::span<Reading> into) noexcept;

  [[nodiscard]] std::size_t size() const noexcept;
  [[nodiscard]] std::size_t capacity() const noexcept { return slots_.size(); }
  [[nodiscard]] std::uint64_t overflowed() const noexcept {
    return overflowed_.load(std::memory_order_relaxed);
  }

 private:
  static constexpr std::size_t kCacheLine = 64;  // what one thread writes must not slow the other

  alignas(kCacheLine) std::atomic<std::uint64_t> pushed_{0};
  std::atomic<std::uint64_t> overflowed_{0};
  loop::PrefaultedMemory memory_;
  std::span<Reading> slots_;
  alignas(kCacheLine) std::atomic<std::uint64_t> taken_{0};
};

}  // namespace fairlap::telemetry
