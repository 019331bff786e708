#include "feed/lending.hpp"

#include <atomic>
#include <utility>

#include "feed/forks.hpp"

namespace fairlap::feed {
namespace {

dlpack::DataType dlpack_type(ElementType type) noexcept {
  dlpack::DataType out;
  out.bits = static_cast<std::uint8_t>(8 * bytes_of(type));
  switch (type) {
    case ElementType::boolean:
      out.code = dlpack::code_bool;
      break;
    case ElementType::uint8:
      out.code = dlpack::code_uint;
      break;
    case ElementType::int8:
    case ElementType::int16:
    case ElementType::int32:
    case ElementType::int64:
      out.code = dlpack::code_int;
      break;
    case ElementType::bfloat16:
      out.code = dlpack::code_bfloat;
      break;
    case ElementType::float16:
    case ElementType::float32:
    case ElementType::float64:
      out.code = dlpack::code_float;
      break;
  }
  return out;
}

}  // namespace

Lending::Lending(std::size_t slots, std::size_t batch, SampleArray delivered, const MakeLink& make_link)
    : forks_(forks_behind_us()),
      delivered_(std::move(delivered)),
      bytes_per_sample_(delivered_.bytes_per_sample()),
      slots_(slots, checked_product(bytes_per_sample_, batch),
             make_link ? Refill::longest_empty : Refill::last_emptied),
      link_(make_link ? make_link(slots_.all_memory()) : nullptr),
      cards_(slots) {
  for (std::size_t slot = 0; slot < slots; ++slot) {
    Card& card = cards_[slot];
    card.lending = this;
    card.slot = slot;
    card.shape.push_back(0);
    card.shape.insert(card.shape.end(), delivered_.sample_shape.begin(), delivered_.sample_shape.end());
    card.strides.assign(card.shape.size(), 1);
    for (std::size_t place = card.shape.size() - 1; place > 0; --place) {
      card.strides[place - 1] = card.strides[place] * card.shape[place];
    }
    dlpack::Tensor tensor;
    tensor.data = link_ ? link_->memory(slot) : slots_.memory(slot);
    tensor.device = device();
    tensor.dimensions = static_cast<std::int32_t>(card.shape.size());
    tensor.type = dlpack_type(delivered_.type);
    tensor.shape = card.shape.data();
    tensor.strides = card.strides.data();
    card.managed.tensor = card.versioned.tensor = tensor;
    card.managed.context = card.versioned.context = &card;
    card.managed.deleter = [](dlpack::Managed* self) { give_back(*static_cast<Card*>(self->context)); };
    card.versioned.deleter = [](dlpack::ManagedVersioned* self) {
      give_back(*static_cast<Card*>(self->context));
    };
  }
}

void Lending::set_samples(std::size_t slot, std::size_t samples) noexcept {
  cards_[slot].samples = samples;
  cards_[slot].shape.front() = static_cast<std::int64_t>(samples);
}

dlpack::Device Lending::device() const noexcept { return link_ ? link_->device() : dlpack::Device{}; }

std::span<const std::int64_t> Lending::shape(std::size_t slot) const noexcept { return cards_[slot].shape; }

Lending::Card& Lending::held_once_more(const Ticket& ticket) {
  if (in_a_child()) throw StaleSlot("this batch belongs to the process that this one was forked from");
  slots_.hold(ticket);
  Card& card = cards_[ticket.slot];
  // Holders in several threads write the same value here, and only while they hold this generation.
  std::atomic_ref(card.generation).store(ticket.generation, std::memory_order_relaxed);
  return card;
}

Lending::Card& Lending::lent_to(const Ticket& ticket, std::optional<std::uintptr_t> stream) {
  Card& card = held_once_more(ticket);
  if (!link_) return card;
  try {
    if (stream) {
      link_->make_wait(*stream, ticket.slot);
    } else {
      link_->used_by_unknown(ticket.slot);
    }
  } catch (...) {
    give_back(ticket);
    throw;
  }
  return card;
}

void* Lending::address_of(const Ticket& ticket) {
  if (link_ && !in_a_child()) link_->used_by_unknown(ticket.slot);
  return cards_[ticket.slot].managed.tensor.data;
}

void Lending::give_back(Card& card) noexcept {
  card.lending->give_back({card.slot, std::atomic_ref(card.generation).load(std::memory_order_relaxed)});
}

bool Lending::in_a_child() const noexcept { return forks_behind_us() != forks_; }

void Lending::give_back(const Ticket& ticket) {
  if (in_a_child() || !slots_.let_go(ticket)) return;
  if (link_) link_->given_back(ticket.slot, cards_[ticket.slot].all_named.exchange(false));
  slots_.put_back(ticket.slot);  // and with that all this may end
}

void Lending::give_back_after(const Ticket& ticket, std::span<const std::uintptr_t> streams) {
  if (link_ && !in_a_child() && !streams.empty()) {
    for (const std::uintptr_t stream : streams) link_->will_be_used(stream, ticket.slot);
    cards_[ticket.slot].all_named = true;
  }
  give_back(ticket);
}

bool Lending::is_current(const Ticket& ticket) const { return !in_a_child() && slots_.is_current(ticket); }

dlpack::Managed* Lending::lend(const Ticket& ticket, std::optional<std::uintptr_t> stream) {
  return &lent_to(ticket, stream).managed;
}

dlpack::ManagedVersioned* Lending::lend_versioned(const Ticket& ticket,
                                                  std::optional<std::uintptr_t> stream) {
  return &lent_to(ticket, stream).versioned;
}

}  // namespace fairlap::feed
