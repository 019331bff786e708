#include <atomic>
#include <chrono>
#include <cstdint>
#include <cstring>
#include <memory>
#include <set>
#include <thread>
#include <vector>

#include "feed/element_type.hpp"
#include "feed/slots.hpp"
#include "tests/check.hpp"
#include "tests/refuses.hpp"

using namespace fairlap::feed;
using namespace std::chrono_literals;
using fairlap::test::refuses;

namespace {

std::size_t fill_one(Slots& slots) {
  const Slots::Begun begun = slots.begin_filling();
  slots.publish(begun.slot, 0);
  return begun.slot;
}

void give_back(Slots& slots, const Ticket& ticket) {
  if (slots.let_go(ticket)) slots.put_back(ticket.slot);
}

TEST("every slot begins on a page and holds its bytes without touching its neighbour") {
  Slots slots(3, 5000);
  for (std::size_t slot = 0; slot < 3; ++slot) {
    CHECK_EQUAL(reinterpret_cast<std::uintptr_t>(slots.memory(slot)) % 4096, 0U);
    std::memset(slots.memory(slot), static_cast<int>(slot) + 1, 5000);
  }
  for (std::size_t slot = 0; slot < 3; ++slot) {
    CHECK_EQUAL(static_cast<int>(slots.memory(slot)[0]), static_cast<int>(slot) + 1);
    CHECK_EQUAL(static_cast<int>(slots.memory(slot)[4999]), static_cast<int>(slot) + 1);
  }
}

TEST("a slot goes round: empty, filling, full, handed out, empty") {
  Slots slots(1, 64);
  CHECK_EQUAL(slots.count_in(SlotState::empty), 1U);
  const Slots::Begun begun = slots.begin_filling();
  CHECK_EQUAL(slots.count_in(SlotState::filling), 1U);
  slots.publish(begun.slot, 0);
  CHECK_EQUAL(slots.count_in(SlotState::full), 1U);
  const Slots::Arrived arrived = slots.hand_out(0ns, nullptr);
  CHECK(arrived.arrival == Arrival::full);
  CHECK_EQUAL(slots.count_in(SlotState::handed_out), 1U);
  give_back(slots, arrived.ticket);
  CHECK_EQUAL(slots.count_in(SlotState::empty), 1U);
}

TEST(
    "a consumer that keeps up goes round in as few slots as it holds, or in all of them where that is "
    "wanted") {
  for (const Refill refill : {Refill::last_emptied, Refill::longest_empty}) {
    Slots slots(4, 64, refill);
    std::set<std::size_t> used;
    for (int batch = 0; batch < 8; ++batch) {
      used.insert(fill_one(slots));
      give_back(slots, slots.hand_out(0ns, nullptr).ticket);
    }
    CHECK_EQUAL(used.size(), refill == Refill::last_emptied ? 1U : 4U);
  }
}

TEST("batches leave in the order in which filling began, whichever is full first") {
  Slots slots(2, 64);
  const Slots::Begun first = slots.begin_filling();
  const Slots::Begun second = slots.begin_filling();
  slots.publish(second.slot, 0);
  CHECK(slots.hand_out(0ns, nullptr).arrival == Arrival::not_yet);
  slots.publish(first.slot, 0);
  CHECK_EQUAL(slots.hand_out(0ns, nullptr).batch, 0U);
  CHECK_EQUAL(slots.hand_out(0ns, nullptr).batch, 1U);
}

TEST("a release of an older generation is refused, and the slot stays with its current owner") {
  Slots slots(1, 64);
  fill_one(slots);
  const Ticket old_one = slots.hand_out(0ns, nullptr).ticket;
  give_back(slots, old_one);
  CHECK(refuses<StaleSlot>([&] { give_back(slots, old_one); }));
  fill_one(slots);
  const Ticket new_one = slots.hand_out(0ns, nullptr).ticket;
  CHECK_EQUAL(new_one.slot, old_one.slot);
  CHECK(refuses<StaleSlot>([&] { give_back(slots, old_one); }));
  CHECK(refuses<StaleSlot>([&] { slots.hold(old_one); }));
  CHECK(!slots.is_current(old_one));
  CHECK(slots.is_current(new_one));
}

TEST("a slot with two holders is empty only when both have given it back") {
  Slots slots(1, 64);
  fill_one(slots);
  const Ticket ticket = slots.hand_out(0ns, nullptr).ticket;
  slots.hold(ticket);
  give_back(slots, ticket);
  CHECK_EQUAL(slots.count_in(SlotState::handed_out), 1U);
  give_back(slots, ticket);
  CHECK_EQUAL(slots.count_in(SlotState::empty), 1U);
}

TEST("filling waits while no slot is empty, and continues when one is given back") {
  Slots slots(1, 64);
  fill_one(slots);
  const Ticket ticket = slots.hand_out(0ns, nullptr).ticket;
  std::atomic<bool> went_on{false};
  std::thread filler([&] {
    slots.wait_until_one_is_empty();
    went_on = true;
  });
  std::this_thread::sleep_for(20ms);
  const bool too_early = went_on;
  give_back(slots, ticket);
  filler.join();
  CHECK(!too_early);
  CHECK(went_on);
}

TEST("a consumer that holds every slot gets an error") {
  Slots slots(2, 64);
  for (int i = 0; i < 2; ++i) {
    fill_one(slots);
    slots.hand_out(0ns, nullptr);
  }
  CHECK(slots.hand_out(1ms, nullptr).arrival == Arrival::all_held);
}

TEST("closing wakes threads that wait for an empty slot or for a batch") {
  Slots slots(1, 64);
  fill_one(slots);
  slots.hand_out(0ns, nullptr);
  bool filler_told_to_go_on = true;
  Arrival consumer_told = Arrival::not_yet;
  std::thread filler([&] { filler_told_to_go_on = slots.wait_until_one_is_empty(); });
  std::thread consumer([&] { consumer_told = slots.hand_out(20s, nullptr).arrival; });
  slots.close();
  filler.join();
  consumer.join();
  CHECK(!filler_told_to_go_on);
  CHECK(consumer_told == Arrival::closed);
}

TEST("the end comes after the last batch, not before") {
  Slots slots(2, 64);
  fill_one(slots);
  slots.end_after(1);
  CHECK(slots.hand_out(0ns, nullptr).arrival == Arrival::full);
  CHECK(slots.hand_out(20s, nullptr).arrival == Arrival::ended);
}

TEST("a handed-out slot keeps its owner alive until it is given back, and may then take the slots with it") {
  auto owned = std::make_shared<Slots>(2, 64);
  const std::weak_ptr<Slots> watched = owned;
  fill_one(*owned);
  const Ticket ticket = owned->hand_out(0ns, owned).ticket;
  Slots* const slots = owned.get();
  owned.reset();
  CHECK(!watched.expired());
  CHECK_EQUAL(slots->batches_held().size(), 1U);
  give_back(*slots, ticket);
  CHECK(watched.expired());
}

TEST("slots larger than any memory are refused") {
  CHECK(refuses<BadFeed>([] { const Slots slots(16, SIZE_MAX / 4); }));
  CHECK(refuses<BadFeed>([] { const Slots slots(0, 64); }));
}

}  // namespace

TEST_MAIN()
