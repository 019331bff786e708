#include <array>
#include <atomic>
#include <thread>
#include <vector>

#include "telemetry/sampling/marks.hpp"
#include "telemetry/sampling/ring.hpp"
#include "tests/check.hpp"

using namespace fairlap::telemetry;

namespace {

Reading numbered(std::int64_t number) {
  Reading reading;
  reading.time_ns = number;
  reading.value = static_cast<double>(number);
  return reading;
}

}  // namespace

TEST("readings come out in the order in which they went in") {
  Ring ring(4);
  std::array<Reading, 8> out;
  std::int64_t next_in = 0;
  std::int64_t next_out = 0;
  for (int round = 0; round < 10; ++round) {
    for (int i = 0; i < 3; ++i) CHECK(ring.push(numbered(next_in++)));
    CHECK_EQUAL(ring.size(), 3U);
    const std::size_t taken = ring.take(out);
    CHECK_EQUAL(taken, 3U);
    for (std::size_t i = 0; i < taken; ++i) CHECK_EQUAL(out[i].time_ns, next_out++);
  }
  CHECK_EQUAL(ring.overflowed(), 0U);
}

TEST("a full ring turns new readings away, counts them, and keeps the old ones") {
  Ring ring(4);
  for (int i = 0; i < 7; ++i) CHECK_EQUAL(ring.push(numbered(i)), i < 4);
  CHECK_EQUAL(ring.overflowed(), 3U);
  std::array<Reading, 2> out;
  CHECK_EQUAL(ring.take(out), 2U);
  CHECK_EQUAL(out[1].time_ns, 1);
  CHECK(ring.push(numbered(9)));
  CHECK_EQUAL(ring.take(out), 2U);
  CHECK_EQUAL(out[0].time_ns, 2);
  CHECK_EQUAL(ring.take(out), 1U);
  CHECK_EQUAL(out[0].time_ns, 9);
  CHECK_EQUAL(ring.take(out), 0U);
}

TEST("a ring or a table of marks without room, or with more than a machine has, is refused") {
  const auto refused = [](auto make) {
    try {
      make();
    } catch (const std::invalid_argument&) {
      return true;
    }
    return false;
  };
  // The last is a size at which the number of bytes is 0 again.
  for (const std::size_t room : {std::size_t{0}, Ring::kMostReadings + 1, std::size_t{1} << 60U}) {
    CHECK(refused([&] { Ring ring(room); }));
    CHECK(refused([&] { Marks marks(room); }));
  }
}

TEST("between two threads no reading is torn, lost or doubled") {
  Ring ring(64);
  constexpr std::int64_t kCount = 20'000;
  std::thread producer([&] {
    for (std::int64_t i = 0; i < kCount; ++i) {
      while (!ring.push(numbered(i))) std::this_thread::yield();
    }
  });
  std::array<Reading, 50> out;
  std::int64_t next = 0;
  bool whole = true;
  while (next < kCount) {
    const std::size_t taken = ring.take(out);
    for (std::size_t i = 0; i < taken; ++i, ++next) {
      whole = whole && out[i].time_ns == next && out[i].value == static_cast<double>(next);
    }
    if (taken == 0) std::this_thread::yield();
  }
  producer.join();
  CHECK(whole);
}

TEST("marks keep their order, and those without room are counted") {
  Marks marks(3);
  CHECK_EQUAL(marks.capacity(), 4U);
  for (std::uint64_t i = 0; i < 6; ++i) CHECK_EQUAL(marks.set({static_cast<std::int64_t>(i), i}), i < 4);
  CHECK_EQUAL(marks.overflowed(), 2U);
  std::array<Mark, 8> out;
  CHECK_EQUAL(marks.take(out), 4U);
  CHECK_EQUAL(out[3].label, 3U);
  CHECK(marks.set({10, 10}));
  CHECK_EQUAL(marks.take(out), 1U);
  CHECK_EQUAL(out[0].label, 10U);
}

TEST("marks from several threads all arrive, each once and whole") {
  Marks marks(256);
  constexpr std::uint64_t kThreads = 3;
  constexpr std::uint64_t kEach = 4'000;
  std::vector<std::thread> setters;
  for (std::uint64_t t = 0; t < kThreads; ++t) {
    setters.emplace_back([&, t] {
      for (std::uint64_t i = 0; i < kEach; ++i) {
        const std::uint64_t label = t * kEach + i;
        while (!marks.set({static_cast<std::int64_t>(label), label})) std::this_thread::yield();
      }
    });
  }
  std::vector<int> seen(kThreads * kEach, 0);
  std::array<Mark, 32> out;
  bool whole = true;
  for (std::size_t arrived = 0; arrived < seen.size();) {
    const std::size_t taken = marks.take(out);
    for (std::size_t i = 0; i < taken; ++i) {
      whole = whole && out[i].time_ns == static_cast<std::int64_t>(out[i].label);
      ++seen.at(out[i].label);
    }
    arrived += taken;
    if (taken == 0) std::this_thread::yield();
  }
  for (std::thread& setter : setters) setter.join();
  CHECK(whole);
  for (const int times : seen) CHECK_EQUAL(times, 1);
}

TEST_MAIN()
