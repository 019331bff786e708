#include "telemetry/sampling/marks.hpp"

#include <bit>
#include <stdexcept>
#include <string>

namespace fairlap::telemetry {

namespace {

std::size_t allowed(std::size_t capacity) {
  if (capacity == 0) throw std::invalid_argument("there must be room for at least one mark");
  if (capacity > Marks::kMostMarks) {
    throw std::invalid_argument("there is room for at most " + std::to_string(Marks::kMostMarks) + " marks");
  }
  return capacity;
}

}  // namespace

Marks::Marks(std::size_t capacity) : mask_(std::bit_ceil(allowed(capacity)) - 1) {
  slots_ = std::make_unique<Slot[]>(mask_ + 1);
  for (std::size_t i = 0; i <= mask_; ++i) slots_[i].turn.store(i, std::memory_order_relaxed);
}

bool Marks::set(const Mark& mark) noexcept {
  std::uint64_t number = next_set_.load(std::memory_order_relaxed);
  while (true) {
    Slot& slot = slots_[number & mask_];
    const std::uint64_t turn = slot.turn.load(std::memory_order_acquire);
    if (turn == number) {
      if (!next_set_.compare_exchange_weak(number, number + 1, std::memory_order_relaxed)) continue;
      slot.mark = mark;
      slot.turn.store(number + 1, std::memory_order_release);
      return true;
    }
    if (turn < number) {  // still holds a mark of the round before, which has not been taken
      overflowed_.fetch_add(1, std::memory_order_relaxed);
      return false;
    }
    number = next_set_.load(std::memory_order_relaxed);
  }
}

std::size_t Marks::take(std::span<Mark> into) noexcept {
  std::size_t count = 0;
  while (count < into.size()) {
    Slot& slot = slots_[next_taken_ & mask_];
    if (slot.turn.load(std::memory_order_acquire) != next_taken_ + 1) break;
    into[count++] = slot.mark;
    slot.turn.store(next_taken_ + mask_ + 1, std::memory_order_release);
    ++next_taken_;
  }
  return count;
}

}  // namespace fairlap::telemetry
