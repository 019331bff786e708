#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <csignal>
#include <cstdint>
#include <cstring>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "feed/staging.hpp"
#include "tests/check.hpp"
#include "tests/refuses.hpp"
#include "tests/scratch_file.hpp"

using namespace fairlap::feed;
using namespace std::chrono_literals;
using fairlap::test::refusal;
using fairlap::test::refuses;
using fairlap::test::ScratchFile;

namespace {

// Sample i is the number i. Reading can be slow, and can fail from one sample on.
class CountingSource final : public Source {
 public:
  explicit CountingSource(std::size_t samples) : Source({ElementType::int64, {}, samples}) {}
  [[nodiscard]] const std::byte* in_place(std::uint64_t /*sample*/) const noexcept override {
    return nullptr;
  }
  void read(std::uint64_t first, std::size_t samples, std::byte* to) const override {
    for (std::uint64_t sample = first; sample < first + samples; ++sample) {
      if (sample >= fails_from) throw SourceFailed("sample " + std::to_string(sample) + " is broken");
      std::this_thread::sleep_for(sample % 3 == 0 ? takes : 0us);
      std::memcpy(to, &sample, sizeof sample);
      to += sizeof sample;
    }
  }
  void check_still_there() const override {}

  std::uint64_t fails_from = UINT64_MAX;
  std::chrono::microseconds takes{0};
};

StagingSettings plan_of(std::size_t batch, std::size_t slots, std::size_t threads, std::uint64_t epochs = 1) {
  StagingSettings settings;
  settings.order.batch = batch;
  settings.order.epochs = epochs;
  settings.slots = slots;
  settings.threads = threads;
  return settings;
}

std::vector<std::int64_t> numbers_in(Staging& staging, const Staging::Delivered& delivered) {
  std::vector<std::int64_t> out(delivered.samples);
  std::memcpy(out.data(), staging.lending()->slots().memory(delivered.ticket.slot), out.size() * 8);
  return out;
}

std::vector<std::int64_t> all_numbers(Staging& staging) {
  std::vector<std::int64_t> out;
  std::uint64_t batches = 0;
  while (true) {
    const Staging::Delivered delivered = staging.next(10s);
    if (!delivered.is_batch) return out;
    CHECK_EQUAL(delivered.batch, batches++);
    for (const std::int64_t number : numbers_in(staging, delivered)) out.push_back(number);
    staging.lending()->give_back(delivered.ticket);
  }
}

std::vector<std::int64_t> counting_to(std::int64_t end) {
  std::vector<std::int64_t> out;
  for (std::int64_t number = 0; number < end; ++number) out.push_back(number);
  return out;
}

TEST("batches come in order and whole, however many threads and slots there are") {
  for (const std::size_t threads : {1U, 4U}) {
    for (const std::size_t slots : {1U, 2U, 5U}) {
      auto source = std::make_unique<CountingSource>(103);
      source->takes = 50us;
      Staging staging(std::move(source), plan_of(4, slots, threads));
      CHECK(all_numbers(staging) == counting_to(103));
      CHECK(!staging.next(10s).is_batch);
    }
  }
}

TEST("threads do not change which samples a batch has") {
  StagingSettings one = plan_of(8, 3, 1, 3);
  one.order.seed = 9;
  StagingSettings four = one;
  four.threads = 4;
  Staging with_one(std::make_unique<CountingSource>(100), one);
  Staging with_four(std::make_unique<CountingSource>(100), four);
  CHECK(all_numbers(with_one) == all_numbers(with_four));
}

TEST("a failure comes in place of its batch, with its number, after the batches before it") {
  for (const std::size_t threads : {1U, 3U}) {
    auto source = std::make_unique<CountingSource>(40);
    source->fails_from = 22;
    Staging staging(std::move(source), plan_of(4, 3, threads));
    for (std::uint64_t batch = 0; batch < 5; ++batch) {
      const Staging::Delivered delivered = staging.next(10s);
      CHECK_EQUAL(delivered.batch, batch);
      staging.lending()->give_back(delivered.ticket);
    }
    const std::string wanted = "batch 5 could not be fed: sample 22 is broken";
    CHECK_EQUAL(refusal<BatchFailed>([&] { staging.next(10s); }), wanted);
    CHECK_EQUAL(refusal<BatchFailed>([&] { staging.next(10s); }), wanted);
    CHECK_EQUAL(refusal<BatchFailed>([&] { staging.next_at_hand(); }), wanted);
    CHECK(staging.close().empty());
  }
}

TEST("a file that shrinks while it is fed ends the feeding with an error, not with a signal") {
  const ScratchFile file(std::string(1 << 16, 'x'));
  StagingSettings settings = plan_of(16, 2, 2, 0);
  Staging staging(source_in_raw_file(file.path(), 0, {ElementType::uint8, {64}, 0}), settings);
  staging.lending()->give_back(staging.next(10s).ticket);
  file.shrink_to(100);
  const std::string message = refusal<BatchFailed>([&] {
    for (int batch = 0; batch < 100; ++batch) staging.lending()->give_back(staging.next(10s).ticket);
  });
  CHECK(message.find("became shorter") != std::string::npos);
}

TEST("closing ends the threads at once although the data is endless, and returns which batches are held") {
  Staging staging(std::make_unique<CountingSource>(10), plan_of(4, 4, 2, 0));
  const Staging::Delivered first = staging.next(10s);
  const Staging::Delivered second = staging.next(10s);
  staging.lending()->give_back(first.ticket);
  const std::vector<std::uint64_t> held = staging.close();
  CHECK(held == std::vector<std::uint64_t>{1});
  CHECK(numbers_in(staging, second) == (std::vector<std::int64_t>{4, 5, 6, 7}));
  CHECK(refuses<FeederStopped>([&] { staging.next(10s); }));
  staging.lending()->give_back(second.ticket);
  CHECK(staging.close().empty());
}

TEST("a consumer that waits is woken when the feeder closes") {
  auto source = std::make_unique<CountingSource>(10);
  source->takes = 200ms;
  Staging staging(std::move(source), plan_of(4, 2, 1));
  bool stopped = false;
  std::thread consumer([&] { stopped = refuses<FeederStopped>([&] { staging.next(10s); }); });
  std::this_thread::sleep_for(20ms);
  staging.close();
  consumer.join();
  CHECK(stopped);
}

TEST("a consumer that holds every slot gets an error, and can continue after a release") {
  Staging staging(std::make_unique<CountingSource>(100), plan_of(4, 2, 1));
  const Ticket first = staging.next(10s).ticket;
  const Ticket second = staging.next(10s).ticket;
  CHECK(refusal<FeederStopped>([&] { staging.next(1ms); }).find("all 2 slots are held") != std::string::npos);
  staging.lending()->give_back(first);
  const Staging::Delivered third = staging.next(10s);
  CHECK_EQUAL(third.batch, 2U);
  staging.lending()->give_back(second);
  staging.lending()->give_back(third.ticket);
}

TEST("the end is seen even while every slot is held") {
  Staging staging(std::make_unique<CountingSource>(8), plan_of(4, 2, 1));
  const Ticket first = staging.next(10s).ticket;
  const Ticket second = staging.next(10s).ticket;
  CHECK(!staging.next(10s).is_batch);
  staging.lending()->give_back(first);
  staging.lending()->give_back(second);
}

TEST("an interrupted wait leaves the batch for the next call") {
  auto source = std::make_unique<CountingSource>(4);
  source->takes = 150ms;
  Staging staging(std::move(source), plan_of(4, 2, 1));
  CHECK(refuses<FeederStopped>([&] { staging.next(10s, [] { return false; }); }));
  const Staging::Delivered delivered = staging.next(10s);
  CHECK(numbers_in(staging, delivered) == counting_to(4));
  staging.lending()->give_back(delivered.ticket);
}

TEST("what is at hand is given without waiting, and nothing when nothing is") {
  auto source = std::make_unique<CountingSource>(4);
  source->takes = 50ms;
  Staging staging(std::move(source), plan_of(4, 2, 1));
  CHECK(!staging.next_at_hand().answered);
  const Staging::Delivered delivered = staging.next(10s);
  CHECK(delivered.is_batch);
  const Staging::AtHand end = staging.next_at_hand();
  CHECK(end.answered);
  CHECK(!end.delivered.is_batch);
  staging.lending()->give_back(delivered.ticket);
}

void check_stalls_add_up(const StallTimes& stalls, double seen_ns) {
  const auto parts =
      static_cast<double>(stalls.consumer_ns + stalls.source_ns + stalls.staging_ns + stalls.no_slot_ns);
  const auto wall = static_cast<double>(stalls.wall_ns);
  CHECK_NEAR(parts, wall, 0.01 * wall);
  CHECK_NEAR(wall, seen_ns, 0.01 * seen_ns + 2e6);
}

double ns_since(std::chrono::steady_clock::time_point began) {
  return std::chrono::duration<double, std::nano>(std::chrono::steady_clock::now() - began).count();
}

TEST("the stall times add up to the wall time and show a slow source") {
  auto source = std::make_unique<CountingSource>(120);
  source->takes = 3ms;
  const auto began = std::chrono::steady_clock::now();
  Staging staging(std::move(source), plan_of(4, 3, 1));
  all_numbers(staging);
  const StallTimes stalls = staging.stalls();
  check_stalls_add_up(stalls, ns_since(began));
  CHECK(stalls.source_ns > 60'000'000);  // of the 120 ms that it slept
  CHECK_EQUAL(stalls.batches, 30U);
  CHECK_EQUAL(stalls.samples, 120U);
  CHECK_EQUAL(stalls.bytes, 960U);
}

TEST("the stall times add up to the wall time and show a slow consumer") {
  const auto began = std::chrono::steady_clock::now();
  Staging staging(std::make_unique<CountingSource>(80), plan_of(4, 3, 1));
  for (Staging::Delivered got = staging.next(10s); got.is_batch; got = staging.next(10s)) {
    std::this_thread::sleep_for(5ms);
    staging.lending()->give_back(got.ticket);
  }
  const StallTimes stalls = staging.stalls();
  check_stalls_add_up(stalls, ns_since(began));
  CHECK(stalls.consumer_ns >= 100'000'000);  // what it slept
}

TEST("the stall times add up to the wall time and show that the consumer held every slot") {
  const auto began = std::chrono::steady_clock::now();
  Staging staging(std::make_unique<CountingSource>(80), plan_of(4, 1, 1));
  for (int round = 0; round < 4; ++round) {
    const Ticket ticket = staging.next(10s).ticket;
    std::thread later([&] {
      std::this_thread::sleep_for(50ms);
      staging.lending()->give_back(ticket);
    });
    const Ticket next = staging.next(10s).ticket;
    later.join();
    staging.lending()->give_back(next);
  }
  staging.close();
  const StallTimes stalls = staging.stalls();
  check_stalls_add_up(stalls, ns_since(began));
  CHECK(stalls.no_slot_ns > 100'000'000);  // of the 200 ms that it held on
}

TEST("signals go to the feeder's owner, not to its threads") {
  static std::atomic<int> seen_by_others{0};
  static std::atomic<int> seen_here{0};
  static const std::thread::id here = std::this_thread::get_id();
  std::signal(SIGUSR1, [](int) { ++(std::this_thread::get_id() == here ? seen_here : seen_by_others); });
  Staging staging(std::make_unique<CountingSource>(10), plan_of(4, 2, 4, 0));
  for (int i = 0; i < 50; ++i) kill(getpid(), SIGUSR1);
  std::signal(SIGUSR1, SIG_DFL);
  CHECK(seen_here > 0);
  CHECK_EQUAL(seen_by_others.load(), 0);
}

TEST("a forked child is refused, and can drop the feeder without harm to the parent's") {
  auto staging = std::make_unique<Staging>(std::make_unique<CountingSource>(100), plan_of(4, 2, 2));
  const Staging::Delivered held = staging->next(10s);
  const pid_t child = fork();
  if (child == 0) {
    alarm(20);  // hanging is a failure too
    const bool refused = refuses<FeederStopped>([&] { staging->next(10s); }) &&
                         refuses<StaleSlot>([&] { staging->lending()->lend(held.ticket); });
    staging->lending()->give_back(held.ticket);
    staging->close();
    staging.reset();
    _exit(refused ? 0 : 1);
  }
  int status = -1;
  waitpid(child, &status, 0);
  CHECK_EQUAL(status, 0);
  staging->lending()->give_back(held.ticket);
  const Staging::Delivered next = staging->next(10s);
  CHECK_EQUAL(next.batch, 1U);
  staging->lending()->give_back(next.ticket);
}

TEST("a feeder without threads or slots, or larger than any memory, is refused") {
  const auto made = [](const StagingSettings& settings) {
    Staging(std::make_unique<CountingSource>(10), settings);
  };
  CHECK(refuses<BadFeed>([&] { made(plan_of(4, 2, 0)); }));
  CHECK(refuses<BadFeed>([&] { made(plan_of(4, 0, 1)); }));
  CHECK(refuses<BadFeed>([&] { made(plan_of(SIZE_MAX / 8, 4, 1)); }));
}

}  // namespace

TEST_MAIN()
