#pragma once

#include <chrono>
#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <span>
#include <stdexcept>
#include <vector>

#include "feed/link.hpp"

namespace fairlap::feed {

// A slot was used or given back by a consumer that no longer holds it.
class StaleSlot : public std::logic_error {
  using std::logic_error::logic_error;
};

enum class SlotState { empty, filling, full, handed_out, leaving };

// Names one hand-out of one slot. The generation grows with every hand-out, so that an old ticket is known.
struct Ticket {
  std::size_t slot = 0;
  std::uint64_t generation = 0;
};

// What happened to a slot on its way, on the engine's clock; the stall times are computed from it.
struct SlotTimes {
  std::uint64_t emptied_ns = 0;  // when the last holder gave it back
  std::uint64_t claimed_ns = 0;
  std::uint64_t filled_ns = 0;
  std::uint64_t source_ns = 0;  // how much of the filling was reading
  std::uint64_t copied_ns =
      0;  // when it was seen that a link had copied from it; 0 where nothing was waited for
  std::uint64_t freed_ns = 0;  // when no work on the device used it any more
};

// Which empty slot is filled next. What was emptied last is still in a processor's cache; what has been empty
// longest is the likeliest to be free on a device too.
enum class Refill { last_emptied, longest_empty };

enum class Arrival { full, ended, closed, all_held, not_yet };

// A fixed number of page-aligned pieces of one mapping. A slot goes round: empty, filling, full,
// handed out, for a moment leaving, empty. Batches are numbered as filling begins and leave in that order,
// whichever is full first. Filling waits while no slot is empty, and nothing is allocated after construction.
class Slots {
 public:
  Slots(std::size_t count, std::size_t bytes_each, Refill refill = Refill::last_emptied);
  ~Slots();
  Slots(const Slots&) = delete;  // Consumers have addresses in it.
  Slots& operator=(const Slots&) = delete;

  [[nodiscard]] std::size_t count() const noexcept { return slots_.size(); }
  [[nodiscard]] std::size_t bytes_each() const noexcept { return bytes_each_; }
  [[nodiscard]] std::byte* memory(std::size_t slot) const noexcept { return memory_ + slot * stride_; }
  [[nodiscard]] HostSlots all_memory() const noexcept { return {memory_, stride_, slots_.size()}; }

  // For the threads that fill. The first two are called by one thread at a time.
  bool wait_until_one_is_empty();  // false once closed
  struct Begun {
    std::size_t slot = 0;
    std::uint64_t batch = 0;
  };
  Begun begin_filling();
  // Where there is a link: when it was seen to be done with the slot, which can be filled from now on.
  void freed(std::size_t slot, std::uint64_t copied_ns);
  void publish(std::size_t slot, std::uint64_t source_ns);
  void end_after(std::uint64_t batches);  // there will be no more

  // For the consumer. Waits at most this long for the batch whose turn it is.
  struct Arrived {
    Arrival arrival = Arrival::not_yet;
    Ticket ticket;
    std::uint64_t batch = 0;
    SlotTimes times;
  };
  // The owner is kept until the slot is given back, so that its memory outlives every holder.
  Arrived hand_out(std::chrono::nanoseconds patience, std::shared_ptr<const void> owner);

  // More than one may hold a handed-out slot; it is empty again when the last gives it back. Both
  // refuse a ticket whose slot has moved on.
  void hold(const Ticket& ticket);
  // True for the last, who then puts the slot back when nothing else is to be done.
  [[nodiscard]] bool let_go(const Ticket& ticket);
  void put_back(std::size_t slot);
  [[nodiscard]] bool is_current(const Ticket& ticket) const;

  [[nodiscard]] bool closed() const;
  void close();  // wakes all waiting threads; what is handed out stays valid until it is given back
  [[nodiscard]] std::vector<std::uint64_t> batches_held() const;
  [[nodiscard]] std::size_t count_in(SlotState state) const;

 private:
  struct Slot {
    SlotState state = SlotState::empty;
    std::uint64_t generation = 0;
    std::uint64_t batch = 0;
    std::size_t holders = 0;
    SlotTimes times;
    std::shared_ptr<const void> owner;
  };
  Slot& handed_out(const Ticket& ticket);
  [[nodiscard]] std::size_t count_in_locked(SlotState state) const;

  std::size_t bytes_each_;
  std::size_t stride_;
  std::byte* memory_ = nullptr;

  mutable std::mutex mutex_;
  std::condition_variable emptied_;
  std::condition_variable filled_;
  std::vector<Slot> slots_;
  Refill refill_;
  std::vector<std::size_t> empty_ring_;     // slots in the order in which they became empty
  std::vector<std::size_t> slot_of_batch_;  // batches begun and not yet handed out are fewer than slots
  std::size_t empty_first_ = 0;
  std::size_t empty_count_ = 0;
  std::uint64_t next_to_begin_ = 0;
  std::uint64_t next_to_hand_out_ = 0;
  std::uint64_t ends_after_;
  bool closed_ = false;
};

}  // namespace fairlap::feed
