#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <limits>
#include <span>
#include <vector>

#include "clock/clock.hpp"
#include "loop/counters.hpp"
#include "loop/robust_interval.hpp"
#include "loop/run.hpp"
#include "loop/turns.hpp"
#include "tests/check.hpp"
#include "tests/loop_works.hpp"

using namespace fairlap;
using namespace fairlap::loop;
using namespace fairlap::test;

namespace {

template <class TimedWork>
std::unique_ptr<Record> run_on_best_clock(TimedWork& work, const Settings& settings) {
  const clock::Clock& best = clock::Clock::best();
  TakerFor<TimedWork> taker(work, best.source());
  return run(taker, best, settings);
}

Settings exactly(std::size_t samples, std::uint64_t calls_per_sample = 1) {
  Settings settings;
  settings.stop.samples = samples;
  settings.calls_per_sample = calls_per_sample;
  settings.warm_up = WarmUpKind::none;
  return settings;
}

double median_of(std::span<const double> values) {
  std::vector<double> copy(values.begin(), values.end());
  return quantile_in_place(copy, 0.5);
}

}  // namespace

TEST("a sample's ticks become nanoseconds per call without the clock's bias") {
  std::vector<std::uint64_t> samples = {1000, 25, 0, static_cast<std::uint64_t>(-3)};
  CHECK_EQUAL(ticks_to_ns(samples, 0.5, 20.0, 4.0), 1U);
  std::array<double, 4> ns{};
  std::memcpy(ns.data(), samples.data(), sizeof(ns));
  CHECK_EQUAL(ns[0], (1000 * 0.5 - 20.0) / 4);
  CHECK_EQUAL(ns[1], (25 * 0.5 - 20.0) / 4);  // below the bias: an honest reading around nothing
  CHECK_EQUAL(ns[2], -20.0 / 4);
  CHECK(std::isnan(ns[3]));
}

TEST("a run corrects its samples by the bias of its clock") {
  CountedWork work;
  CHECK_EQUAL(run_on_best_clock(work, exactly(10))->correction_ns, clock::Clock::best().floor().bias_ns);
}

TEST("a run stopped by count calls the work exactly samples times calls per sample") {
  CountedWork work;
  const auto record = run_on_best_clock(work, exactly(1000, 3));
  CHECK_EQUAL(work.calls, 3000U);
  CHECK_EQUAL(record->taken, 1000U);
  CHECK(record->stopped_by == StopReason::samples);
  CHECK_EQUAL(work.entered, work.left);
}

TEST("drawn calls are made at their shares of the samples, the last one after the last sample") {
  CountedWork work;
  Settings settings = exactly(10);
  settings.drawn_at = {0.0, 0.5, 0.5, 0.999};
  const auto record = run_on_best_clock(work, settings);
  const std::vector<std::uint64_t> expected = {0, 6, 7, 13};
  CHECK(work.calls_before_drawn == expected);
  CHECK_EQUAL(work.drawn_ended, 4U);
  CHECK_EQUAL(record->taken, 10U);
  CHECK(record->stopped_by == StopReason::samples);
}

TEST("every sample and every drawn call is prepared for, and the preparation is in none of their times") {
  for (const bool with_completion : {false, true}) {
    PreparedWork work;
    work.with_completion = with_completion;
    Settings settings = exactly(50);
    settings.warm_up = WarmUpKind::calls;
    settings.warm_up_calls = 3;
    settings.drawn_at = {0.0, 0.5};
    const auto record = run_on_best_clock(work, settings);
    CHECK_EQUAL(record->taken, 50U);
    CHECK_EQUAL(work.preparations, 50U + 3U + 2U);
    CHECK_EQUAL(work.calls, work.preparations);
    CHECK_EQUAL(work.unready, 0U);
    CHECK(median_of(record->wall_ns()) < PreparedWork::kPreparationNs / 10.0);
    CHECK(work.shortest_drawn_ns < PreparedWork::kPreparationNs / 2.0);
  }
}

TEST("a preparation that raises ends the run before the call, and the samples before it are kept") {
  PreparedWork work;
  work.raise_at = 8;
  const auto record = run_on_best_clock(work, exactly(50));
  CHECK_EQUAL(record->taken, 7U);
  CHECK_EQUAL(work.calls, 7U);
  CHECK(record->stopped_by == StopReason::raised);
}

TEST("work that raises on its 501st call leaves 500 samples") {
  CountedWork work;
  work.raise_at_call = 501;
  const auto record = run_on_best_clock(work, exactly(1000));
  CHECK_EQUAL(record->taken, 500U);
  CHECK(record->stopped_by == StopReason::raised);
  CHECK_EQUAL(work.entered, work.left);
}

TEST("a sample of several calls that raises in its middle is not kept") {
  CountedWork work;
  work.raise_at_call = 15;
  const auto record = run_on_best_clock(work, exactly(1000, 10));
  CHECK_EQUAL(record->taken, 1U);
  CHECK_EQUAL(work.calls, 15U);
}

TEST("a request to stop ends the run after the current sample") {
  CountedWork work;
  work.stop_at_call = 77;
  const auto record = run_on_best_clock(work, exactly(1000));
  CHECK_EQUAL(record->taken, 77U);
  CHECK(record->stopped_by == StopReason::interrupt);
}

TEST("a request to stop seen only between slices ends the run too") {
  CountedWork work;
  work.stop_at_leave = true;
  const auto record = run_on_best_clock(work, exactly(1'000'000'000 / 100));
  CHECK(record->stopped_by == StopReason::interrupt);
  CHECK(record->taken > 0);
}

TEST("a request to stop during the warm-up is not lost") {
  CountedWork work;
  work.stop_at_call = 3;
  Settings settings;
  settings.stop.seconds = 10;
  const auto record = run_on_best_clock(work, settings);
  CHECK(record->stopped_by == StopReason::interrupt);
  CHECK_EQUAL(record->taken, 0U);
}

TEST("a completion is waited for once a sample and host_issue is never longer than wall") {
  CountedWork work;
  work.with_completion = true;
  const auto record = run_on_best_clock(work, exactly(1000, 2));
  CHECK_EQUAL(work.waits, 1000U);
  CHECK_EQUAL(record->host_issue_ns().size(), 1000U);
  for (std::size_t i = 0; i < record->taken; ++i) CHECK(record->host_issue_ns()[i] <= record->wall_ns()[i]);
}

TEST("a run stopped by time ends within a slice and a sample of it") {
  SpinningWork work(100'000);
  Settings settings;
  settings.stop.seconds = 0.05;
  settings.warm_up = WarmUpKind::none;
  const auto record = run_on_best_clock(work, settings);
  CHECK(record->stopped_by == StopReason::seconds);
  CHECK(record->elapsed_ns >= 0.05e9);
}

TEST("a given warm-up makes at least the calls asked for and none of them is a sample") {
  CountedWork work;
  Settings settings = exactly(10);
  settings.warm_up = WarmUpKind::calls;
  settings.warm_up_calls = 123;
  const auto record = run_on_best_clock(work, settings);
  CHECK_EQUAL(record->warm_up.calls, 123U);
  CHECK_EQUAL(work.calls, 133U);
  CHECK(record->warm_up.first_call_ns > 0);
}

TEST("an empty call is repeated within a sample until the sample clears the floor") {
  Settings settings;
  settings.stop.samples = 200;
  const clock::Floor& floor = clock::Clock::best().floor();
  const double wanted_ns = settings.floor_multiple * (floor.quantum_ns + floor.overhead_ns);
  // A call that is slower while the number is chosen than afterwards makes samples shorter, so one of several
  // attempts counts.
  double sample_ns = 0.0;
  for (int attempt = 0; attempt < 20 && sample_ns <= 0.5 * wanted_ns; ++attempt) {
    CountedWork work;
    const auto record = run_on_best_clock(work, settings);
    if (record->calls_per_sample > 16)
      sample_ns = median_of(record->wall_ns()) * static_cast<double>(record->calls_per_sample);
  }
  CHECK(sample_ns > 0.5 * wanted_ns);
}

TEST("a sample that lost its core does not choose how many calls a sample has") {
  Settings settings = exactly(10, 0);
  settings.warm_up = WarmUpKind::calls;
  settings.warm_up_calls = 100;
  std::uint64_t wanted = std::numeric_limits<std::uint64_t>::max();
  for (int attempt = 0; attempt < 3; ++attempt) {
    InterruptedWork never(0);
    wanted = std::min(wanted, run_on_best_clock(never, settings)->calls_per_sample);
  }
  CHECK(wanted > 16);
  for (const std::uint64_t choosing : {101U, 106U, 150U}) {
    // Other programs may take the core from further samples, so one of several attempts counts.
    std::uint64_t chosen = 0;
    for (int attempt = 0; attempt < 20 && chosen < wanted / 2; ++attempt) {
      InterruptedWork work(choosing);
      chosen = run_on_best_clock(work, settings)->calls_per_sample;
    }
    CHECK(chosen >= wanted / 2);
  }
}

TEST("a long call is one sample") {
  SpinningWork work(20'000);
  Settings settings;
  settings.stop.samples = 50;
  CHECK_EQUAL(run_on_best_clock(work, settings)->calls_per_sample, 1U);
}

TEST("a target for the spread stops a steady run early") {
  SpinningWork work(20'000);
  Settings settings;
  settings.stop.target_half_width = 0.2;
  settings.stop.seconds = 20;
  const auto record = run_on_best_clock(work, settings);
  CHECK(record->stopped_by == StopReason::target);
  CHECK(record->elapsed_ns < 10e9);
}

// A sanitizer slows the work and faults in shadow pages of its own; these two hold without one.
#if !defined(__SANITIZE_THREAD__) && !defined(__SANITIZE_ADDRESS__)

TEST("known durations from 1 us to 1 s are read within one percent or two quanta at the median") {
  for (const std::uint64_t length_ns :
       {1'000U, 10'000U, 100'000U, 1'000'000U, 10'000'000U, 100'000'000U, 1'000'000'000U}) {
    const std::size_t samples = length_ns >= 100'000'000U ? 3 : length_ns >= 10'000'000U ? 9 : 200;
    // Beyond the spin's own two readings there are the first's entry and the last's return, one reading in
    // all.
    const double clock_reading_ns = clock::Clock::named("monotonic_raw").floor().overhead_ns;
    const double quantum_ns = clock::Clock::best().floor().quantum_ns;
    const double allowed_ns = std::max(0.01 * static_cast<double>(length_ns), 2 * quantum_ns);
    // Other programs only add to what is measured, so one of several attempts counts.
    double error_ns = 0.0;
    for (int attempt = 0; attempt < 5; ++attempt) {
      SpinningWork work(length_ns);
      const auto record = run_on_best_clock(work, exactly(samples));
      std::vector<double> errors_ns;
      for (std::size_t i = 0; i < samples; ++i)
        errors_ns.push_back(record->wall_ns()[i] - work.lengths_ns[i]);
      error_ns = median_of(errors_ns);
      CHECK(error_ns > -allowed_ns);
      if (error_ns < allowed_ns + clock_reading_ns) break;
    }
    CHECK(error_ns < allowed_ns + clock_reading_ns);
  }
}

TEST("a million samples are stored without a page fault in the calling thread") {
  CountedWork work;
  run_on_best_clock(work, exactly(1000));
  const auto record = run_on_best_clock(work, exactly(1'000'000));
  std::int64_t faults = 0;
  for (const Group& group : record->groups.groups()) faults += group.thread.minor_faults;
  constexpr std::int64_t kPagesOfSamples = 8 * 1'000'000 / 4096;
  CHECK(faults < kPagesOfSamples / 20);  // a machine that is short of memory may take some pages back
}

#endif

TEST("works take turns in the order given, each after an untimed call, until one raises") {
  const clock::Clock& best = clock::Clock::best();
  CountedWork first;
  CountedWork second;
  TakerFor<CountedWork> of_first(first, best.source());
  TakerFor<CountedWork> of_second(second, best.source());
  const std::vector<Turntaker> works{{&of_first, 1}, {&of_second, 5}};
  const std::vector<std::uint32_t> order{0, 1, 1, 0, 0, 1};
  std::vector<double> wall_ns(order.size(), -1.0);
  const TurnsTaken whole = take_turns(works, order, {}, best, wall_ns);
  CHECK(whole.taken == 6);
  CHECK(whole.why == Interruption::none);
  CHECK(first.calls == 3 * (1 + 1));
  CHECK(second.calls == 3 * (1 + 5));
  second.raise_at_call = second.calls + 6 + 3;  // in its second timed sample
  const TurnsTaken broken = take_turns(works, order, {}, best, wall_ns);
  CHECK(broken.taken == 2);
  CHECK(broken.last == 1);
  CHECK(broken.why == Interruption::raised);
}

TEST("drawn calls among turns come after a call of the same work, and are no samples") {
  const clock::Clock& best = clock::Clock::best();
  CountedWork first;
  CountedWork second;
  TakerFor<CountedWork> of_first(first, best.source());
  TakerFor<CountedWork> of_second(second, best.source());
  const std::vector<Turntaker> works{{&of_first, 3}, {&of_second, 1}};
  const std::vector<std::uint32_t> order{0, 1, 0, 1};
  const std::vector<DrawnTurn> drawn{{1, 0}, {1, 1}, {3, 1}};
  std::vector<double> wall_ns(order.size(), -1.0);
  const TurnsTaken taken = take_turns(works, order, drawn, best, wall_ns);
  CHECK(taken.taken == 4);
  CHECK(first.calls == 2 * (1 + 3) + 2);
  CHECK(second.calls == 2 * (1 + 1) + 2 * 2);
  CHECK((first.calls_before_drawn == std::vector<std::uint64_t>{(1 + 3) + 1}));
  CHECK((second.calls_before_drawn == std::vector<std::uint64_t>{1, 2 + 2 + 1}));
  CHECK(first.drawn_ended + second.drawn_ended == 3);
}

TEST("groups cover every sample once and in order") {
  SpinningWork work(50'000);
  const auto record = run_on_best_clock(work, exactly(300));
  std::int64_t next = 0;
  for (const Group& group : record->groups.groups()) {
    CHECK_EQUAL(group.first_sample, next);
    next += group.samples;
  }
  CHECK_EQUAL(next, 300);
  CHECK(record->groups.groups().size() > 5);
}

TEST("touching fresh pages shows as minor faults of the thread") {
  const Counters before = Counters::read();
  const PrefaultedMemory memory(64U << 12U);
  const Counters after = Counters::read();
  CHECK(memory.bytes() > 0);
  CHECK(slice_between(before, after).thread.minor_faults >= 1);
}

TEST_MAIN()
