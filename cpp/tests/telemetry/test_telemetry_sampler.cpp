#include <chrono>
#include <cstdlib>
#include <thread>

#include "clock/system_clock.hpp"
#include "fakes/fake_nvml.h"
#include "telemetry/nvml/nvml_source.hpp"
#include "telemetry/sampling/call_budget.hpp"
#include "telemetry/sampling/deadlines.hpp"
#include "telemetry/sampling/every_few.hpp"
#include "tests/check.hpp"
#include "tests/telemetry/sampler_at_work.hpp"

using namespace fairlap::test;
using std::chrono::milliseconds;

namespace {

std::uint64_t deadlines_held_and_missed(const SamplerCounts& counts) {
  return counts.rounds - 2 + counts.missed;  // two rounds are those of start and stop
}

}  // namespace

TEST("deadlines follow a grid from which jitter does not drift away") {
  Deadlines deadlines(1000, 100, 0.5, 7);
  bool moved = false;
  for (std::uint64_t k = 0; k < 1000; ++k) {
    const auto base = static_cast<std::int64_t>(1000 + 100 * k);
    CHECK(deadlines.next_ns() >= base && deadlines.next_ns() <= base + 50);
    moved = moved || deadlines.next_ns() > base + 5;
    CHECK_EQUAL(deadlines.advance(deadlines.next_ns()), 0U);
  }
  CHECK(moved);
}

TEST("a deadline is missed when the one after it is due as well, and the grid stays") {
  Deadlines deadlines(0, 100, 0.0, 1);
  CHECK_EQUAL(deadlines.advance(199), 0U);  // the deadline at 100 is late, but is held
  CHECK_EQUAL(deadlines.next_ns(), 100);
  CHECK_EQUAL(deadlines.advance(555), 3U);  // those at 200, 300 and 400 are gone
  CHECK_EQUAL(deadlines.next_ns(), 500);
  CHECK_EQUAL(deadlines.number(), 5U);
}

TEST("a slower lane keeps its number of rounds when deadlines are missed") {
  EveryFew slow(4);
  int due = 0;
  for (std::uint64_t deadline = 0; deadline < 40; ++deadline) due += slow.due(deadline) ? 1 : 0;
  CHECK_EQUAL(due, 10);
  CHECK(!slow.due(42));
  CHECK(slow.due(49));  // 43 and 47 were missed: one round replaces both
  CHECK(!slow.due(50));
  CHECK(slow.due(51));
}

TEST("calls that would take more than their share of wall time are made in every second, third, ... round") {
  constexpr std::int64_t kPeriodNs = 25'000'000;
  const auto rounds_of_100 = [](CallBudget& budget, std::int64_t cost_ns) {
    int due = 0;
    for (int round = 0; round < 100; ++round) {
      if (!budget.due()) continue;
      ++due;
      budget.spent(cost_ns);
    }
    return due;
  };
  CallBudget cheap(0.005, kPeriodNs);  // 125 us for each round
  CHECK_EQUAL(rounds_of_100(cheap, 125'000), 100);
  CallBudget expensive(0.005, kPeriodNs);
  CHECK_EQUAL(rounds_of_100(expensive, 2'400'000), 5);  // 2.4 ms is 19.2 rounds' worth
  CallBudget interrupted(0.005, kPeriodNs);
  for (int round = 0; round < 8; ++round) {
    CHECK(interrupted.due());
    interrupted.spent(10'000);
  }
  CHECK(interrupted.due());
  interrupted.spent(50'000'000);  // the machine's doing, not the call's
  CHECK_EQUAL(rounds_of_100(interrupted, 10'000), 100);
}

TEST(
    "a sampler holds its fast lane back where the calls are expensive, counts that, and keeps the slow "
    "lane") {
  fake_nvml_reset();
  fake_nvml_use_real_clock(1);
  fake_nvml_set_cost("nvmlDeviceGetFieldValues", 400'000);
  SamplerSettings settings = every(milliseconds(2), milliseconds(50));
  settings.most_call_share = 0.05;  // 100 us a round
  Sampler sampler(nvml_sources(FAIRLAP_FAKE_NVML), engine_clock(), settings);
  sampler.start();
  wait_until([&] { return sampler.counts().slow_rounds >= 4U && sampler.counts().rounds >= 100U; });
  sampler.stop();
  fake_nvml_use_real_clock(0);
  const SamplerCounts counts = sampler.counts();
  std::uint64_t powers = 0;
  for (const Reading& reading : collected(sampler)) powers += reading.field == 0 ? 1 : 0;
  CHECK_EQUAL(powers, counts.rounds - counts.held_back);
  CHECK(counts.held_back >= 2 * (powers - 2));
  CHECK(counts.calls_ns >= static_cast<std::int64_t>(powers) * 400'000);
}

TEST("a sampler reads both lanes at their periods until it is stopped, and loses nothing") {
  Sampler sampler(just(std::make_unique<Counting>()), engine_clock(),
                  every(milliseconds(2), milliseconds(20)));
  CHECK(!sampler.running());
  const auto before = std::chrono::steady_clock::now();
  sampler.start();
  sampler.start();
  CHECK(sampler.running());
  wait_until([&] {
    return deadlines_held_and_missed(sampler.counts()) >= 100U && sampler.counts().slow_rounds >= 4U;
  });
  sampler.stop();
  sampler.stop();
  CHECK(!sampler.running());
  const double periods =
      std::chrono::duration<double, std::milli>(std::chrono::steady_clock::now() - before).count() / 2.0;
  const SamplerCounts counts = sampler.counts();
  const auto readings = collected(sampler);
  CHECK_EQUAL(in_a_row(readings, 0).size(), counts.rounds);
  CHECK_EQUAL(in_a_row(readings, 1).size(), counts.slow_rounds);
  // Held or missed, no deadline goes unaccounted for; the clock was read outside, so a few may differ.
  CHECK(static_cast<double>(deadlines_held_and_missed(counts)) <= periods + 1.0);
  CHECK(counts.slow_rounds <= counts.rounds);
  CHECK_EQUAL(counts.overflowed_readings, 0U);
  CHECK(counts.cpu_ns > 0);
  const auto after_stop = sampler.counts().rounds;
  std::this_thread::sleep_for(milliseconds(10));
  CHECK_EQUAL(sampler.counts().rounds, after_stop);
}

TEST("at 1 kHz every publication of a sensor is caught and no reading is lost") {
  const char* const asked = std::getenv("FAIRLAP_SAMPLER_PROOF_SECONDS");
  const int seconds = asked != nullptr ? std::atoi(asked) : 2;
  fake_nvml_reset();
  fake_nvml_use_real_clock(1);
  // A new value with each publication: power runs up by a watt in each of the sensor's periods of 100 ms.
  fake_nvml_power_constant(0, 0);
  fake_nvml_power_point(0, 0, 0, 0);
  fake_nvml_power_point(0, 1'000'000'000LL * 1000, 10'000'000, 1);
  constexpr std::int64_t kPublishedEveryNs = 100'000'000;
  fake_nvml_power_sensor(0, kPublishedEveryNs, 0, 0, 1'000'000'000);
  SamplerSettings settings = every(milliseconds(1), milliseconds(100));
  Sampler sampler(nvml_sources(FAIRLAP_FAKE_NVML), engine_clock(), settings);
  sampler.start();
  std::vector<Reading> readings;
  for (int tenth = 0; tenth < 10 * seconds; ++tenth) {
    std::this_thread::sleep_for(milliseconds(100));
    sampler.collect(readings);
  }
  sampler.stop();
  sampler.collect(readings);
  fake_nvml_use_real_clock(0);
  const SamplerCounts counts = sampler.counts();
  std::uint64_t powers = 0;
  double first_w = -1.0, last_w = -1.0;
  std::int64_t first_ns = 0, last_ns = 0;
  for (const Reading& reading : readings) {
    CHECK(reading.state == ReadingState::value);
    if (reading.field != 0) continue;
    ++powers;
    if (last_w < 0.0) {
      first_w = reading.value;
      first_ns = reading.time_ns;
    } else if (reading.value != last_w) {
      // A step of two is a publication that was missed, unless this machine let the sampler wait for a
      // period.
      const std::int64_t most = 1 + (reading.time_ns - last_ns) / kPublishedEveryNs;
      CHECK(reading.value - last_w > 0.999 && reading.value - last_w < static_cast<double>(most) + 0.001);
    }
    last_w = reading.value;
    last_ns = reading.time_ns;
  }
  const double sampled_ns = static_cast<double>(last_ns - first_ns);
  CHECK_EQUAL(powers, counts.rounds);
  CHECK_EQUAL(counts.overflowed_readings, 0U);
  CHECK(last_w - first_w >= sampled_ns / kPublishedEveryNs - 1.0);
  // Of those that passed while this machine let the last round wait, none is counted yet.
  const double waited_ms = static_cast<double>(counts.worst_lateness_ns) / 1e6;
  CHECK(static_cast<double>(deadlines_held_and_missed(counts)) >= 0.98 * sampled_ns / 1e6 - waited_ms - 1.0);
  if (asked != nullptr) {
    std::printf(
        "%d s at 1 kHz: %llu rounds, %llu missed, %llu lost, worst lateness %.3f ms, %.3f %% of a core\n",
        seconds, static_cast<unsigned long long>(counts.rounds),
        static_cast<unsigned long long>(counts.missed),
        static_cast<unsigned long long>(counts.overflowed_readings),
        static_cast<double>(counts.worst_lateness_ns) / 1e6,
        static_cast<double>(counts.cpu_ns) / 1e7 / seconds);
  }
}

TEST("without collecting, readings that do not fit are counted and those kept stay in order") {
  SamplerSettings settings = every(milliseconds(1), milliseconds(1000));
  settings.readings = 16;
  Sampler sampler(just(std::make_unique<Counting>()), engine_clock(), settings);
  sampler.start();
  while (sampler.counts().overflowed_readings < 5) std::this_thread::sleep_for(milliseconds(2));
  sampler.stop();
  const auto readings = collected(sampler);
  CHECK_EQUAL(readings.size(), 16U);
  in_a_row(readings, 0);
}

TEST("a sampler without anything fast wakes up for its slow lane only") {
  Sampler sampler(just(std::make_unique<Counting>(false)), engine_clock(),
                  every(milliseconds(1), milliseconds(40)));
  CHECK_EQUAL(sampler.period().count(), 40'000'000);
  sampler.start();
  wait_until([&] { return sampler.counts().slow_rounds >= 3U; });
  sampler.stop();
  CHECK_EQUAL(sampler.counts().rounds, sampler.counts().slow_rounds);
  CHECK(collected(sampler).size() >= 3U);
}

TEST("stopping does not wait for a long period, and everything between start and stop is enclosed") {
  Sampler sampler(just(std::make_unique<Counting>()), engine_clock(),
                  every(milliseconds(60'000), milliseconds(60'000)));
  const std::int64_t before_ns = fairlap::clock::monotonic_now_ns();
  sampler.start();
  const std::int64_t begin_ns = sampler.mark(1);
  const std::int64_t end_ns = sampler.mark(2);
  sampler.stop();
  CHECK(fairlap::clock::monotonic_now_ns() - before_ns < 30'000'000'000);  // half a period
  const auto power = in_a_row(collected(sampler), 0);
  CHECK_EQUAL(power.size(), 2U);
  CHECK(power[0].time_ns <= begin_ns && power[1].time_ns >= end_ns);
}

TEST("a sampler may be started again, and several may run at once") {
  Sampler first(just(std::make_unique<Counting>()), engine_clock(), every(milliseconds(1), milliseconds(10)));
  Sampler second(just(std::make_unique<Counting>()), engine_clock(),
                 every(milliseconds(2), milliseconds(10)));
  for (int round = 0; round < 3; ++round) {
    first.start();
    second.start();
    std::this_thread::sleep_for(milliseconds(10));
    first.stop();
    std::this_thread::sleep_for(milliseconds(5));
    second.stop();
  }
  for (Sampler* sampler : {&first, &second}) {
    CHECK_EQUAL(in_a_row(collected(*sampler), 0).size(), sampler->counts().rounds);
    CHECK(sampler->counts().rounds >= 6U);
  }
}

TEST("marks come back with their labels, in the order of time with the readings") {
  Sampler sampler(just(std::make_unique<Counting>()), engine_clock(),
                  every(milliseconds(1), milliseconds(10)));
  sampler.start();
  const std::int64_t begin_ns = sampler.mark(41);
  std::this_thread::sleep_for(milliseconds(20));
  const std::int64_t end_ns = sampler.mark(42);
  sampler.stop();
  std::vector<Mark> marks;
  sampler.collect(marks);
  CHECK_EQUAL(marks.size(), 2U);
  CHECK_EQUAL(marks[0].label, 41U);
  CHECK_EQUAL(marks[1].time_ns, end_ns);
  CHECK(end_ns - begin_ns >= 19'900'000);
  CHECK_EQUAL(sampler.counts().overflowed_marks, 0U);
}

TEST("settings that cannot be kept are refused") {
  const auto refused = [](const SamplerSettings& settings) {
    try {
      Sampler sampler(just(std::make_unique<Counting>()), engine_clock(), settings);
    } catch (const std::invalid_argument&) {
      return true;
    }
    return false;
  };
  CHECK(refused(every(milliseconds(0), milliseconds(10))));
  CHECK(refused(every(milliseconds(20), milliseconds(10))));
  SamplerSettings settings;
  settings.jitter_share = 1.5;
  CHECK(refused(settings));
  settings = {};
  settings.readings = 0;
  CHECK(refused(settings));
  settings = {};
  settings.rare_period = milliseconds(50);
  CHECK(refused(settings));
  settings = {};
  settings.most_call_share = 0.0;
  CHECK(refused(settings));
  CHECK(!refused(SamplerSettings{}));
}

TEST("a device that is lost in the middle ends its readings, and the sampler continues with the rest") {
  fake_nvml_reset();
  auto sources = nvml_sources(FAIRLAP_FAKE_NVML);
  sources.push_back(std::make_unique<Counting>());
  Sampler sampler(std::move(sources), engine_clock(), every(milliseconds(1), milliseconds(10)));
  sampler.start();
  wait_until([&] { return sampler.counts().rounds >= 5U; });
  fake_nvml_lose_gpu(0);
  const auto before = sampler.counts().rounds;
  wait_until([&] { return sampler.counts().rounds >= before + 5U; });
  sampler.stop();
  bool lost = false;
  std::vector<Reading> counting;
  for (const Reading& reading : collected(sampler)) {
    if (reading.source == 1) {
      counting.push_back(reading);
    } else {
      CHECK(!lost || reading.state == ReadingState::source_lost);
      lost = reading.state == ReadingState::source_lost;
    }
  }
  CHECK(lost);
  CHECK_EQUAL(in_a_row(counting, 0).size(), sampler.counts().rounds);
}

TEST("each field is read alone over and over, until the sampler runs, and the fast lane keeps a new period") {
  std::vector<std::unique_ptr<Source>> sources;
  sources.push_back(std::make_unique<Counting>(false));
  sources.push_back(std::make_unique<Counting>());
  Sampler sampler(std::move(sources), engine_clock(), SamplerSettings{});
  const std::vector<Reading> readings = sampler.read_each_alone(milliseconds(20));
  CHECK(readings.size() >= 6);  // 60 where no look is late
  for (std::size_t i = 0; i < readings.size(); ++i) {
    CHECK_EQUAL(readings[i].source, i % 3 == 0 ? 0U : 1U);
    CHECK_EQUAL(readings[i].field, i % 3 == 1 ? 0U : 1U);  // of the first source, the fast field is absent
    CHECK_EQUAL(readings[i].value, static_cast<double>(i / 3));
  }
  CHECK(collected(sampler).empty());
  sampler.set_fast_period(milliseconds(7));
  CHECK(sampler.period() == milliseconds(7));
  sampler.set_fast_period(std::chrono::seconds(7));
  CHECK(sampler.period() == SamplerSettings{}.slow_period);
  sampler.start();
  int refused = 0;
  try {
    sampler.read_each_alone(milliseconds(1));
  } catch (const NotNow&) {
    ++refused;
  }
  try {
    sampler.set_fast_period(milliseconds(1));
  } catch (const NotNow&) {
    ++refused;
  }
  CHECK_EQUAL(refused, 2);
}

TEST_MAIN()
