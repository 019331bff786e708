#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "feed/dlpack_abi.hpp"
#include "feed/element_type.hpp"
#include "feed/link.hpp"
#include "feed/slots.hpp"

namespace fairlap::feed {

// The slots together with what the samples in them are, so that a batch can be lent to a framework.
// Outlives the feeder as long as a batch is held. The structures that frameworks are given are
// made once for each slot: all who hold one batch share them, and each deleter gives one hold back.
class Lending : public std::enable_shared_from_this<Lending> {
 public:
  Lending(std::size_t slots, std::size_t batch, SampleArray delivered, const MakeLink& make_link = {});

  [[nodiscard]] Slots& slots() noexcept { return slots_; }
  [[nodiscard]] Link* link() noexcept { return link_.get(); }  // none: batches stay in host memory
  [[nodiscard]] dlpack::Device device() const noexcept;
  [[nodiscard]] const SampleArray& delivered() const noexcept { return delivered_; }
  [[nodiscard]] std::size_t bytes_per_sample() const noexcept { return bytes_per_sample_; }

  // Before the slot is filled, by the thread that began it.
  void set_samples(std::size_t slot, std::size_t samples) noexcept;
  [[nodiscard]] std::size_t samples_in(std::size_t slot) const noexcept { return cards_[slot].samples; }

  // While the ticket is current, that is, for the holder of the batch.
  [[nodiscard]] std::span<const std::int64_t> shape(std::size_t slot) const noexcept;

  // Another hold, which the structure's deleter gives back. Throws StaleSlot when the ticket is old.
  // A child forked meanwhile is refused too. On a device the stream is made to wait for the copy; with
  // none the consumer does all waiting itself.
  dlpack::Managed* lend(const Ticket& ticket, std::optional<std::uintptr_t> stream = {});
  dlpack::ManagedVersioned* lend_versioned(const Ticket& ticket, std::optional<std::uintptr_t> stream = {});

  // The address of a batch's first element, which does not hold the slot.
  [[nodiscard]] void* address_of(const Ticket& ticket);

  // Gives one hold back. In a forked child nothing happens: the slot belongs to the parent.
  void give_back(const Ticket& ticket);
  // The same by a consumer that worked on the batch on these streams of the device, and on no other.
  void give_back_after(const Ticket& ticket, std::span<const std::uintptr_t> streams);
  [[nodiscard]] bool is_current(const Ticket& ticket) const;

 private:
  // What is lent of one slot.
  struct Card {
    Lending* lending = nullptr;
    std::size_t slot = 0;
    std::uint64_t generation = 0;
    std::size_t samples = 0;
    std::atomic<bool> all_named = false;  // of the streams that used it
    std::vector<std::int64_t> shape;
    std::vector<std::int64_t> strides;
    dlpack::Managed managed;
    dlpack::ManagedVersioned versioned;
  };
  Card& held_once_more(const Ticket& ticket);
  Card& lent_to(const Ticket& ticket, std::optional<std::uintptr_t> stream);
  static void give_back(Card& card) noexcept;
  [[nodiscard]] bool in_a_child() const noexcept;

  std::uint64_t forks_;  // when it was made
  SampleArray delivered_;
  std::size_t bytes_per_sample_;
  Slots slots_;
  std::unique_ptr<Link> link_;  // after the slots, which it copies from
  std::vector<Card> cards_;
};

}  // namespace fairlap::feed
