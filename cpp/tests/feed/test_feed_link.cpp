// The feeder over a link that follows a test's script, in real time and without a device.

#include <algorithm>
#include <array>
#include <atomic>
#include <chrono>
#include <cstdint>
#include <cstring>
#include <memory>
#include <string>
#include <vector>

#include "feed/staging.hpp"
#include "tests/check.hpp"
#include "tests/refuses.hpp"

using namespace fairlap::feed;
using namespace std::chrono_literals;
using fairlap::test::refusal;
using fairlap::test::refuses;

namespace {

using Clock = std::chrono::steady_clock;

// The numbers from 0 on, one to a sample.
const std::array<std::int64_t, 400>& numbers() {
  static const std::array<std::int64_t, 400> all = [] {
    std::array<std::int64_t, 400> out{};
    for (std::size_t at = 0; at < out.size(); ++at) out[at] = static_cast<std::int64_t>(at);
    return out;
  }();
  return all;
}

// Copies at once into its own memory, but is at work on a slot for as long as it is set to.
class ScriptedLink final : public Link {
 public:
  struct Script {
    std::chrono::milliseconds copying{0};
    std::chrono::milliseconds working{0};  // from when the slot is given back
    int fails_at_send = -1;
    std::atomic<int> sends{0};
    std::atomic<int> dropped{0};
    std::vector<std::uintptr_t> waited;
    std::vector<std::uintptr_t> used;
    int unknown = 0;
    bool all_named = false;
    ScriptedLink* link = nullptr;
  };
  ScriptedLink(const HostSlots& host, Script& script)
      : host_(host), script_(script), memory_(host.stride * host.count), slots_(host.count) {
    script_.link = this;
  }
  ~ScriptedLink() override { ++script_.dropped; }

  [[nodiscard]] dlpack::Device device() const noexcept override { return {dlpack::kDeviceCuda, 3}; }
  [[nodiscard]] void* memory(std::size_t slot) const noexcept override {
    return const_cast<std::byte*>(memory_.data()) + slot * host_.stride;
  }
  SlotUse use_of(std::size_t slot) override {
    if (Clock::now() < slots_[slot].copied) return SlotUse::copied_from;
    return Clock::now() < slots_[slot].free ? SlotUse::worked_on : SlotUse::none;
  }
  void send(std::size_t slot, std::size_t bytes) override {
    if (script_.sends++ == script_.fails_at_send) throw LinkFailed("the copy failed: cable cut");
    std::memcpy(memory(slot), host_.memory + slot * host_.stride, bytes);
    slots_[slot].copied = slots_[slot].free = Clock::now() + script_.copying;
  }
  void make_wait(std::uintptr_t stream, std::size_t /*slot*/) override {
    if (stream == 666) throw LinkFailed("no such stream");
    script_.waited.push_back(stream);
  }
  void will_be_used(std::uintptr_t stream, std::size_t /*slot*/) override { script_.used.push_back(stream); }
  void used_by_unknown(std::size_t /*slot*/) noexcept override { ++script_.unknown; }
  bool has_arrived(std::size_t slot) override { return Clock::now() >= slots_[slot].copied; }
  void given_back(std::size_t slot, bool all_named) noexcept override {
    script_.all_named = all_named;
    slots_[slot].free = std::max(slots_[slot].copied, Clock::now()) + script_.working;
  }

 private:
  struct Times {
    Clock::time_point copied;
    Clock::time_point free;
  };
  HostSlots host_;
  Script& script_;
  std::vector<std::byte> memory_;
  std::vector<Times> slots_;
};

std::unique_ptr<Staging> staging_over(ScriptedLink::Script& script, std::size_t slots,
                                      std::size_t threads = 1, std::size_t batch = 40) {
  StagingSettings settings;
  settings.order.batch = batch;
  settings.slots = slots;
  settings.threads = threads;
  settings.link = [&script](const HostSlots& host) { return std::make_unique<ScriptedLink>(host, script); };
  const auto* const data = reinterpret_cast<const std::byte*>(numbers().data());
  return std::make_unique<Staging>(source_in_memory(data, {ElementType::int64, {}, numbers().size()}),
                                   settings);
}

std::vector<std::int64_t> all_of(Staging& staging) {
  std::vector<std::int64_t> out;
  for (Staging::Delivered got = staging.next(10s); got.is_batch; got = staging.next(10s)) {
    dlpack::Managed* const lent = staging.lending()->lend(got.ticket, 7);
    const auto* const first = static_cast<const std::int64_t*>(lent->tensor.data);
    out.insert(out.end(), first, first + lent->tensor.shape[0]);
    lent->deleter(lent);
    staging.lending()->give_back(got.ticket);
  }
  return out;
}

// Of samples with 64 KiB each, whose numbers must be all the same.
std::vector<std::int64_t> first_of_each_sample(Staging& staging) {
  std::vector<std::int64_t> out;
  for (Staging::Delivered got = staging.next(10s); got.is_batch; got = staging.next(10s)) {
    const auto* row = static_cast<const std::int64_t*>(staging.lending()->link()->memory(got.ticket.slot));
    for (std::size_t sample = 0; sample < got.samples; ++sample, row += 8192) {
      CHECK(std::count(row, row + 8192, *row) == 8192);
      out.push_back(*row);
    }
    staging.lending()->give_back(got.ticket);
  }
  return out;
}

void check_stalls_add_up(const StallTimes& stalls) {
  const auto parts = static_cast<double>(stalls.consumer_ns + stalls.source_ns + stalls.staging_ns +
                                         stalls.link_ns + stalls.no_slot_ns);
  CHECK_NEAR(parts, static_cast<double>(stalls.wall_ns), 0.01 * static_cast<double>(stalls.wall_ns));
}

TEST("lent tensors are on the device, complete and in order, in both versions of DLPack") {
  for (const std::size_t threads : {1U, 3U}) {
    ScriptedLink::Script script;
    const auto staging = staging_over(script, 3, threads);
    const Staging::Delivered got = staging->next(10s);
    dlpack::ManagedVersioned* const newer = staging->lending()->lend_versioned(got.ticket, 7);
    dlpack::Managed* const older = staging->lending()->lend(got.ticket, 8);
    for (const dlpack::Tensor& tensor : {newer->tensor, older->tensor}) {
      CHECK(tensor.device == (dlpack::Device{dlpack::kDeviceCuda, 3}));
      CHECK(tensor.data == staging->lending()->link()->memory(got.ticket.slot));
      CHECK_EQUAL(static_cast<const std::int64_t*>(tensor.data)[39], 39);
    }
    newer->deleter(newer);
    older->deleter(older);
    staging->lending()->give_back(got.ticket);
    const std::vector<std::int64_t> rest = all_of(*staging);
    CHECK(rest == std::vector<std::int64_t>(numbers().begin() + 40, numbers().end()));
    CHECK_EQUAL(script.waited.size(), 11U);
    CHECK_EQUAL(script.waited[1], 8U);
  }
}

StallTimes stalls_after_all(ScriptedLink::Script& script) {
  const auto staging = staging_over(script, 1);
  all_of(*staging);
  staging->close();
  const StallTimes stalls = staging->stalls();
  check_stalls_add_up(stalls);
  return stalls;
}

TEST("the stall times add up to the wall time and show a slow link") {
  ScriptedLink::Script script;
  script.copying = 30ms;
  const StallTimes stalls = stalls_after_all(script);
  CHECK(stalls.has_link);
  CHECK(stalls.link_ns > 150'000'000);  // of the 270 ms between ten copies
  CHECK(stalls.link_ns > 5 * stalls.no_slot_ns);
}

TEST("the stall times distinguish work on the device from the link") {
  ScriptedLink::Script script;
  script.working = 30ms;
  const StallTimes stalls = stalls_after_all(script);
  CHECK(stalls.no_slot_ns > 150'000'000);
  CHECK(stalls.no_slot_ns > 5 * stalls.link_ns);
}

// Sample i is 64 KiB of the number i, read from somewhere while the only slot is, or is not, in use.
class WatchingSource final : public Source {
 public:
  explicit WatchingSource(const ScriptedLink::Script& script)
      : Source({ElementType::int64, {8192}, 80}), script_(script) {}
  [[nodiscard]] const std::byte* in_place(std::uint64_t /*sample*/) const noexcept override {
    return nullptr;
  }
  void read(std::uint64_t first, std::size_t samples, std::byte* to) const override {
    if (script_.link->use_of(0) != SlotUse::none) throw SourceFailed("the slot is still in use");
    for (std::uint64_t sample = first; sample < first + samples; ++sample) {
      const std::vector<std::uint64_t> row(8192, sample);
      std::memcpy(to, row.data(), 8192 * 8);
      to += 8192 * 8;
    }
  }
  void check_still_there() const override {}

 private:
  const ScriptedLink::Script& script_;
};

TEST("what several threads fill is sent once and whole, and no chunk is written while the slot is in use") {
  ScriptedLink::Script script;
  script.copying = 3ms;
  script.working = 3ms;
  StagingSettings settings;
  settings.order.batch = 16;
  settings.slots = 1;
  settings.threads = 4;
  settings.link = [&script](const HostSlots& host) { return std::make_unique<ScriptedLink>(host, script); };
  Staging staging(std::make_unique<WatchingSource>(script), settings);
  const std::vector<std::int64_t> fed = first_of_each_sample(staging);
  CHECK(fed == std::vector<std::int64_t>(numbers().begin(), numbers().begin() + 80));
  CHECK_EQUAL(script.sends.load(), 5);
}

TEST("a copy that fails comes in place of its batch") {
  ScriptedLink::Script script;
  script.fails_at_send = 2;
  const auto staging = staging_over(script, 2);
  const std::string message = refusal<BatchFailed>([&] { all_of(*staging); });
  CHECK_EQUAL(message, std::string("batch 2 could not be fed: the copy failed: cable cut"));
  CHECK(staging->close().empty());
}

TEST("a refused stream leaves the batch with its holder, and no reference behind") {
  ScriptedLink::Script script;
  const auto staging = staging_over(script, 2);
  const Staging::Delivered got = staging->next(10s);
  CHECK(refuses<LinkFailed>([&] { staging->lending()->lend(got.ticket, 666); }));
  CHECK(staging->lending()->is_current(got.ticket));
  staging->lending()->give_back(got.ticket);
  CHECK(!staging->lending()->is_current(got.ticket));
}

TEST("the link learns of streams named at the release, and of unnamed use") {
  ScriptedLink::Script script;
  const auto staging = staging_over(script, 4);
  const std::array<std::uintptr_t, 2> streams{21, 22};
  const Ticket ticket = staging->next(10s).ticket;
  CHECK(staging->lending()->address_of(ticket) == staging->lending()->link()->memory(ticket.slot));
  CHECK_EQUAL(script.unknown, 1);
  staging->lending()->give_back_after(ticket, streams);
  CHECK(script.used == (std::vector<std::uintptr_t>{21, 22}));
  CHECK(script.all_named);
  const Ticket untold = staging->next(10s).ticket;
  dlpack::Managed* const lent = staging->lending()->lend(untold);
  CHECK_EQUAL(script.unknown, 2);
  lent->deleter(lent);
  staging->lending()->give_back(untold);
  CHECK(!script.all_named);
}

TEST("closing does not wait for a device that never ends, and a batch outlives its feeder") {
  ScriptedLink::Script script;
  script.working = std::chrono::hours(1);
  auto staging = staging_over(script, 2);
  staging->lending()->give_back(staging->next(10s).ticket);
  const Staging::Delivered held = staging->next(10s);
  const std::shared_ptr<Lending> lending = staging->lending();
  dlpack::Managed* const lent = lending->lend(held.ticket, 7);
  CHECK(staging->close() == std::vector<std::uint64_t>{1});
  staging.reset();
  CHECK_EQUAL(static_cast<const std::int64_t*>(lent->tensor.data)[0], 40);
  lending->give_back(held.ticket);
  lent->deleter(lent);
  CHECK_EQUAL(script.dropped.load(), 0);
}

TEST("the link ends with the last holder of a batch") {
  ScriptedLink::Script script;
  auto staging = staging_over(script, 2);
  const Ticket ticket = staging->next(10s).ticket;
  dlpack::Managed* const lent = staging->lending()->lend(ticket, 7);
  staging->lending()->give_back(ticket);
  staging.reset();
  CHECK_EQUAL(script.dropped.load(), 0);
  lent->deleter(lent);
  CHECK_EQUAL(script.dropped.load(), 1);
}

}  // namespace

TEST_MAIN()
