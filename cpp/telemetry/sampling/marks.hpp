#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>

namespace fairlap::telemetry {

// A moment that the measured program named, to find the readings of a region later.
struct Mark {
  std::int64_t time_ns = 0;
  std::uint64_t label = 0;
};

// Marks from any thread. Setting one is two atomic operations: it neither locks nor enters the kernel, since
// it happens inside what is measured. (A bounded queue whose slots carry their turn, after D. Vyukov.)
class Marks {
 public:
  static constexpr std::size_t kMostMarks = std::size_t{1} << 24U;

  // Room is rounded up to a power of two.
  explicit Marks(std::size_t capacity);

  // False, and counted, when there was no room.
  bool set(const Mark& mark) noexcept;

  // For one collector at a time.
  std::size_t take(std::span<Mark> into) noexcept;

  [[nodiscard]] std::size_t capacity() const noexcept { return mask_ + 1; }
  [[nodiscard]] std::uint64_t overflowed() const noexcept {
    return overflowed_.load(std::memory_order_relaxed);
  }

 private:
  struct Slot {
    std::atomic<std::uint64_t> turn{0};  // whose it is: of the setter with this number, or one more: filled
    Mark mark;
  };

  std::size_t mask_;
  std::unique_ptr<Slot[]> slots_;
  std::atomic<std::uint64_t> next_set_{0};
  std::uint64_t next_taken_ = 0;
  std::atomic<std::uint64_t> overflowed_{0};
};

}  // namespace fairlap::telemetry
