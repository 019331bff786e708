// Threads that fill one batch together, each a chunk at a time.

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <cstring>
#include <functional>
#include <memory>
#include <mutex>
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

constexpr std::size_t kElements = 8192;     // of a sample, which so has 64 KiB
constexpr std::size_t kSamplesInChunk = 4;  // of 256 KiB

// Sample i is the number i, over and over. What a test wants happens before each read.
class WideSource final : public Source {
 public:
  using BeforeRead = std::function<void(std::uint64_t first, std::size_t samples)>;
  WideSource(std::size_t samples, BeforeRead before)
      : Source({ElementType::int64, {kElements}, samples}), before_(std::move(before)) {}
  [[nodiscard]] const std::byte* in_place(std::uint64_t /*sample*/) const noexcept override {
    return nullptr;
  }
  void read(std::uint64_t first, std::size_t samples, std::byte* to) const override {
    before_(first, samples);
    for (std::uint64_t sample = first; sample < first + samples; ++sample) {
      const std::vector<std::uint64_t> row(kElements, sample);
      std::memcpy(to, row.data(), kElements * 8);
      to += kElements * 8;
    }
  }
  void check_still_there() const override {}

 private:
  BeforeRead before_;
};

StagingSettings plan_of(std::size_t batch, std::size_t slots, std::size_t threads) {
  StagingSettings settings;
  settings.order.batch = batch;
  settings.slots = slots;
  settings.threads = threads;
  return settings;
}

std::vector<std::byte> all_bytes(Staging& staging) {
  std::vector<std::byte> out;
  for (Staging::Delivered got = staging.next(10s); got.is_batch; got = staging.next(10s)) {
    const std::byte* const first = staging.lending()->slots().memory(got.ticket.slot);
    out.insert(out.end(), first, first + got.samples * staging.lending()->bytes_per_sample());
    staging.lending()->give_back(got.ticket);
  }
  return out;
}

// Where threads meet: each waits until so many are there.
class Meeting {
 public:
  explicit Meeting(std::size_t wanted) : wanted_(wanted) {}
  void join() {
    std::unique_lock lock(mutex_);
    if (++here_ == wanted_) all_here_.notify_all();
    if (!all_here_.wait_for(lock, 10s, [this] { return here_ >= wanted_; })) {
      throw SourceFailed("only " + std::to_string(here_) + " threads came");
    }
  }

 private:
  std::mutex mutex_;
  std::condition_variable all_here_;
  std::size_t wanted_;
  std::size_t here_ = 0;
};

TEST("as many threads as a batch has chunks fill it together, where there is one slot") {
  Meeting meeting(4);
  const auto meet = [&](std::uint64_t /*first*/, std::size_t /*samples*/) { meeting.join(); };
  Staging staging(std::make_unique<WideSource>(16, meet), plan_of(16, 1, 4));
  const std::vector<std::byte> bytes = all_bytes(staging);
  std::vector<std::uint64_t> numbers(bytes.size() / 8);
  std::memcpy(numbers.data(), bytes.data(), bytes.size());
  CHECK_EQUAL(numbers.size(), 16 * kElements);
  for (std::size_t at = 0; at < numbers.size(); ++at) CHECK_EQUAL(numbers[at], at / kElements);
}

// How many samples each read of the first batch took, by the first of them.
std::vector<std::size_t> reads_of(std::size_t batch) {
  std::mutex mutex;
  std::vector<std::size_t> reads(batch, 0);
  const auto note = [&](std::uint64_t first, std::size_t samples) {
    const std::scoped_lock lock(mutex);
    reads[first] = samples;
  };
  Staging staging(std::make_unique<WideSource>(batch, note), plan_of(batch, 2, 4));
  all_bytes(staging);
  std::erase(reads, 0U);
  return reads;
}

TEST("a chunk is read at once where its samples are neighbours, and so is a batch of less than two chunks") {
  CHECK(reads_of(1) == std::vector<std::size_t>{1});
  CHECK(reads_of(2 * kSamplesInChunk - 1) == std::vector<std::size_t>{7});
  CHECK(reads_of(2 * kSamplesInChunk) == (std::vector<std::size_t>{4, 4}));
  CHECK(reads_of(18) == (std::vector<std::size_t>{4, 4, 5, 5}));
}

TEST("batches of one chunk are in the making at once") {
  Meeting meeting(3);
  const auto meet = [&](std::uint64_t /*first*/, std::size_t /*samples*/) { meeting.join(); };
  Staging staging(std::make_unique<WideSource>(12, meet), plan_of(4, 3, 3));
  CHECK_EQUAL(all_bytes(staging).size(), 12 * kElements * 8);
}

TEST("the bytes of all batches are the same with one thread and with seven") {
  constexpr std::size_t kSamples = 103;
  std::string data(kSamples * kElements * 8, '\0');
  for (std::uint64_t at = 0; at < kSamples * kElements; ++at) std::memcpy(data.data() + at * 8, &at, 8);
  const ScratchFile file(data);
  const SampleArray array{ElementType::int64, {kElements}, kSamples};
  const auto fed = [&](bool from_file, LastBatch last, std::optional<ElementType> type, std::size_t threads) {
    StagingSettings settings = plan_of(23, 2, threads);
    settings.order.epochs = 2;
    settings.order.seed = 5;
    settings.order.last = last;
    settings.gather.type = type;
    Staging staging(from_file ? source_in_raw_file(file.path(), 0, array)
                              : source_in_memory(reinterpret_cast<const std::byte*>(data.data()), array),
                    settings);
    return all_bytes(staging);
  };
  for (const bool from_file : {false, true}) {
    for (const LastBatch last : {LastBatch::keep, LastBatch::drop, LastBatch::wrap}) {
      const std::vector<std::byte> one = fed(from_file, last, {}, 1);
      CHECK(one == fed(from_file, last, {}, 7));
      const std::size_t samples = last == LastBatch::keep ? 103 : last == LastBatch::drop ? 92 : 115;
      CHECK_EQUAL(one.size(), 2 * samples * kElements * 8);
    }
    CHECK(fed(from_file, LastBatch::keep, ElementType::int32, 1) ==
          fed(from_file, LastBatch::keep, ElementType::int32, 7));
  }
}

TEST("of several chunks that fail the first one is reported, once and in place of its batch") {
  for (const std::size_t threads : {1U, 4U}) {
    const auto fail = [](std::uint64_t first, std::size_t samples) {
      if (first < 36) return;
      if (first < 40) std::this_thread::sleep_for(50ms);  // the later ones have failed by then
      throw SourceFailed("samples " + std::to_string(first) + " to " + std::to_string(first + samples - 1) +
                         " are broken");
    };
    Staging staging(std::make_unique<WideSource>(96, fail), plan_of(16, 4, threads));
    for (std::uint64_t batch = 0; batch < 2; ++batch) {
      const Staging::Delivered delivered = staging.next(10s);
      CHECK_EQUAL(delivered.batch, batch);
      staging.lending()->give_back(delivered.ticket);
    }
    const std::string wanted = "batch 2 could not be fed: samples 36 to 39 are broken";
    CHECK_EQUAL(refusal<BatchFailed>([&] { staging.next(10s); }), wanted);
    CHECK_EQUAL(refusal<BatchFailed>([&] { staging.next(10s); }), wanted);  // and no batch after it
    CHECK(staging.close().empty());
  }
}

TEST("closing ends the threads after the chunks that they are at, not after the batch") {
  std::atomic<int> reads{0};
  std::atomic<bool> may_go_on{false};
  const auto wait = [&](std::uint64_t /*first*/, std::size_t /*samples*/) {
    ++reads;
    while (!may_go_on) std::this_thread::sleep_for(1ms);
  };
  Staging staging(std::make_unique<WideSource>(160, wait), plan_of(80, 2, 2));
  while (reads < 2) std::this_thread::sleep_for(1ms);
  std::thread closer([&] { staging.close(); });
  while (!staging.lending()->slots().closed()) std::this_thread::sleep_for(1ms);
  may_go_on = true;
  closer.join();
  CHECK_EQUAL(reads.load(), 2);
}

TEST("a feeder with more threads than chunks ends while most of them wait") {
  for (int round = 0; round < 20; ++round) {
    StagingSettings settings = plan_of(16, 1, 9);
    settings.order.epochs = 0;
    Staging staging(std::make_unique<WideSource>(64, [](std::uint64_t, std::size_t) {}), settings);
    const Staging::Delivered got = staging.next(10s);
    staging.lending()->give_back(got.ticket);
  }
}

TEST("reading by several threads at the same time counts once") {
  const auto take_long = [](std::uint64_t, std::size_t) { std::this_thread::sleep_for(40ms); };
  Staging staging(std::make_unique<WideSource>(16, take_long), plan_of(16, 1, 4));
  const Slots::Arrived got = staging.lending()->slots().hand_out(10s, staging.lending());
  CHECK(got.arrival == Arrival::full);
  const std::uint64_t filling_ns = got.times.filled_ns - got.times.claimed_ns;
  CHECK(got.times.source_ns <= filling_ns);
  CHECK(got.times.source_ns > filling_ns / 2);
  staging.lending()->give_back(got.ticket);
}

TEST("the stall times add up to the wall time and show a source that is slow to several threads") {
  const auto take_long = [](std::uint64_t, std::size_t) { std::this_thread::sleep_for(5ms); };
  Staging staging(std::make_unique<WideSource>(320, take_long), plan_of(16, 2, 4));
  all_bytes(staging);
  staging.close();
  const StallTimes stalls = staging.stalls();
  const auto parts =
      static_cast<double>(stalls.consumer_ns + stalls.source_ns + stalls.staging_ns + stalls.no_slot_ns);
  CHECK_NEAR(parts, static_cast<double>(stalls.wall_ns), 0.01 * static_cast<double>(stalls.wall_ns));
  CHECK(stalls.source_ns > 40'000'000);  // of the 100 ms that 20 batches take at least
}

}  // namespace

TEST_MAIN()
