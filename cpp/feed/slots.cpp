#include "feed/slots.hpp"

#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>
#include <limits>
#include <new>
#include <string>
#include <utility>

#include "clock/monotonic_raw.hpp"
#include "feed/element_type.hpp"

namespace fairlap::feed {
namespace {

std::uint64_t now_ns() noexcept { return clock::MonotonicRaw::now_ns(); }

std::size_t whole_pages(std::size_t bytes) {
  const auto page = static_cast<std::size_t>(sysconf(_SC_PAGESIZE));
  return checked_product((bytes + page - 1) / page, page);
}

}  // namespace

Slots::Slots(std::size_t count, std::size_t bytes_each, Refill refill)
    : bytes_each_(bytes_each),
      stride_(whole_pages(std::max<std::size_t>(bytes_each, 1))),
      slots_(count),
      refill_(refill),
      empty_ring_(count),
      slot_of_batch_(count),
      empty_count_(count),
      ends_after_(std::numeric_limits<std::uint64_t>::max()) {
  if (count == 0) throw BadFeed("a feeder needs at least one slot");
  const std::size_t bytes = checked_product(stride_, count);
  void* const mapped = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (mapped == MAP_FAILED) throw std::bad_alloc();
  memory_ = static_cast<std::byte*>(mapped);
  static_cast<void>(
      madvise(mapped, bytes, MADV_HUGEPAGE));  // A hint; a kernel without large pages ignores it.
  std::memset(memory_, 0, bytes);  // Written now, so that no page faults while batches are filled.
  for (std::size_t slot = 0; slot < count; ++slot) empty_ring_[slot] = slot;
}

Slots::~Slots() { munmap(memory_, stride_ * slots_.size()); }

bool Slots::wait_until_one_is_empty() {
  std::unique_lock lock(mutex_);
  emptied_.wait(lock, [this] { return closed_ || empty_count_ > 0; });
  return !closed_;
}

Slots::Begun Slots::begin_filling() {
  const std::scoped_lock lock(mutex_);
  if (empty_count_ == 0) throw std::logic_error("filling began while no slot was empty");
  --empty_count_;
  std::size_t place = (empty_first_ + empty_count_) % slots_.size();
  if (refill_ == Refill::longest_empty) {
    place = empty_first_;
    empty_first_ = (empty_first_ + 1) % slots_.size();
  }
  const std::size_t index = empty_ring_[place];
  Slot& slot = slots_[index];
  slot.state = SlotState::filling;
  slot.batch = next_to_begin_++;
  slot.times.claimed_ns = now_ns();
  slot_of_batch_[slot.batch % slots_.size()] = index;
  return {index, slot.batch};
}

void Slots::freed(std::size_t slot, std::uint64_t copied_ns) {
  const std::scoped_lock lock(mutex_);
  SlotTimes& times = slots_[slot].times;
  times.copied_ns = copied_ns;
  times.freed_ns = times.claimed_ns = now_ns();
}

void Slots::publish(std::size_t slot, std::uint64_t source_ns) {
  const std::scoped_lock lock(mutex_);
  slots_[slot].state = SlotState::full;
  slots_[slot].times.filled_ns = now_ns();
  slots_[slot].times.source_ns = source_ns;
  // Signalled under the lock: the consumer may close and destroy all this as soon as it has the batch.
  if (slots_[slot].batch == next_to_hand_out_) filled_.notify_all();
}

void Slots::end_after(std::uint64_t batches) {
  const std::scoped_lock lock(mutex_);
  ends_after_ = batches;
  filled_.notify_all();
}

Slots::Arrived Slots::hand_out(std::chrono::nanoseconds patience, std::shared_ptr<const void> owner) {
  std::unique_lock lock(mutex_);
  const auto begun = [this] { return next_to_hand_out_ < next_to_begin_; };
  const auto next_slot = [this]() -> Slot& {
    return slots_[slot_of_batch_[next_to_hand_out_ % slots_.size()]];
  };
  const auto settled = [&] {
    return closed_ || next_to_hand_out_ >= ends_after_ || (begun() && next_slot().state == SlotState::full);
  };
  Arrived out;
  out.batch = next_to_hand_out_;
  if (patience.count() > 0) filled_.wait_for(lock, patience, settled);
  if (closed_) {
    out.arrival = Arrival::closed;
  } else if (next_to_hand_out_ >= ends_after_) {
    out.arrival = Arrival::ended;
  } else if (begun() && next_slot().state == SlotState::full) {
    Slot& slot = next_slot();
    slot.state = SlotState::handed_out;
    slot.holders = 1;
    slot.owner = std::move(owner);
    out = {Arrival::full,
           {slot_of_batch_[slot.batch % slots_.size()], ++slot.generation},
           slot.batch,
           slot.times};
    ++next_to_hand_out_;
  } else if (count_in_locked(SlotState::handed_out) == slots_.size()) {
    out.arrival = Arrival::all_held;
  }
  return out;
}

Slots::Slot& Slots::handed_out(const Ticket& ticket) {
  if (ticket.slot >= slots_.size()) throw StaleSlot("no such slot");
  Slot& slot = slots_[ticket.slot];
  if (slot.state != SlotState::handed_out || slot.generation != ticket.generation) {
    throw StaleSlot("this batch has been released, and its memory may hold another batch by now");
  }
  return slot;
}

void Slots::hold(const Ticket& ticket) {
  const std::scoped_lock lock(mutex_);
  ++handed_out(ticket).holders;
}

bool Slots::let_go(const Ticket& ticket) {
  const std::scoped_lock lock(mutex_);
  Slot& slot = handed_out(ticket);
  if (--slot.holders > 0) return false;
  slot.state = SlotState::leaving;
  return true;
}

void Slots::put_back(std::size_t index) {
  std::shared_ptr<const void> owner;  // Let go of after the lock: it may be what keeps this object alive.
  const std::scoped_lock lock(mutex_);
  Slot& slot = slots_[index];
  owner = std::move(slot.owner);
  slot.state = SlotState::empty;
  slot.times = {};
  slot.times.emptied_ns = now_ns();
  empty_ring_[(empty_first_ + empty_count_) % slots_.size()] = index;
  ++empty_count_;
  emptied_.notify_one();
}

bool Slots::is_current(const Ticket& ticket) const {
  const std::scoped_lock lock(mutex_);
  return ticket.slot < slots_.size() && slots_[ticket.slot].state == SlotState::handed_out &&
         slots_[ticket.slot].generation == ticket.generation;
}

bool Slots::closed() const {
  const std::scoped_lock lock(mutex_);
  return closed_;
}

void Slots::close() {
  const std::scoped_lock lock(mutex_);
  closed_ = true;
  emptied_.notify_all();
  filled_.notify_all();
}

std::vector<std::uint64_t> Slots::batches_held() const {
  const std::scoped_lock lock(mutex_);
  std::vector<std::uint64_t> held;
  for (const Slot& slot : slots_) {
    if (slot.state == SlotState::handed_out) held.push_back(slot.batch);
  }
  std::sort(held.begin(), held.end());
  return held;
}

std::size_t Slots::count_in(SlotState state) const {
  const std::scoped_lock lock(mutex_);
  return count_in_locked(state);
}

std::size_t Slots::count_in_locked(SlotState state) const {
  return static_cast<std::size_t>(
      std::count_if(slots_.begin(), slots_.end(), [state](const Slot& slot) { return slot.state == state; }));
}

}  // namespace fairlap::feed
