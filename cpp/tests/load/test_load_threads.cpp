#include <algorithm>
#include <atomic>
#include <chrono>
#include <cmath>
#include <cstdint>
#include <limits>
#include <memory>
#include <thread>
#include <utility>
#include <vector>

#include "load/known_service.hpp"
#include "load/load.hpp"
#include "tests/check.hpp"

using namespace fairlap;
using namespace fairlap::load;

namespace {

constexpr double kNan = std::numeric_limits<double>::quiet_NaN();
constexpr double kMs = 1e6;

// The columns of a load with requests at equal distances, all about item 0.
struct Table {
  Table(std::size_t count, double gap_ns)
      : items(count, 0),
        issued(count, kNan),
        started(count, kNan),
        completed(count, kNan),
        worker(count, -1),
        group(count, -1) {
    for (std::size_t place = 0; place < count; ++place) due.push_back(static_cast<double>(place) * gap_ns);
  }
  [[nodiscard]] Requests requests() {
    return {.due_ns = due,
            .items = items,
            .issued_ns = issued,
            .started_ns = started,
            .completed_ns = completed,
            .worker = worker,
            .group = group};
  }
  [[nodiscard]] std::size_t count_completed() const {
    return static_cast<std::size_t>(
        std::count_if(completed.begin(), completed.end(), [](double ns) { return !std::isnan(ns); }));
  }

  std::vector<double> due;
  std::vector<std::uint32_t> items;
  std::vector<double> issued, started, completed;
  std::vector<std::int32_t> worker, group;
};

// Does for each call what the test says.
class ScriptedService final : public Service {
 public:
  explicit ScriptedService(std::function<bool(const Group&)> answer) : answer_(std::move(answer)) {}
  bool serve(const Group& group) override { return answer_(group); }
  bool settle(const Group&, bool may_look) override {
    looked += may_look ? 1 : 0;
    return true;
  }
  std::atomic<int> looked = 0;

 private:
  std::function<bool(const Group&)> answer_;
};

const auto kKeepGoing = [] { return true; };

Settings patient(double give_up_ns = 5000 * kMs) { return {.give_up_ns = give_up_ns, .spin_ns = 10e3}; }

void wait_until(const std::atomic<bool>& flag) {
  while (!flag) std::this_thread::sleep_for(std::chrono::milliseconds(1));
}

}  // namespace

TEST("Every request is served once, and its stamps follow each other") {
  Table table(200, 0.1 * kMs);
  const std::vector<double> lengths(200, 0.02 * kMs);
  KnownService first(lengths, KnownServiceBy::spinning, clock::Clock::best());
  KnownService second(lengths, KnownServiceBy::sleeping, clock::Clock::best());
  Load load(table.requests(), {&first, &second}, patient(), clock::Clock::best());
  const Outcome outcome = load.run(kKeepGoing);
  CHECK(outcome.end == LoadEnd::completed);
  CHECK_EQUAL(outcome.left_in_call, 0U);
  for (std::size_t place = 0; place < 200; ++place) {
    CHECK(table.due[place] <= table.issued[place]);
    CHECK(table.issued[place] <= table.started[place]);
    CHECK(table.started[place] + lengths[place] <= table.completed[place] + 100);  // ns; the clock's steps
    CHECK(table.completed[place] <= outcome.elapsed_ns);
    CHECK(table.worker[place] == 0 || table.worker[place] == 1);
    CHECK_EQUAL(table.group[place], static_cast<std::int32_t>(place));
  }
}

TEST("Requests that are due while the only worker is in a call are in the queue when they are due") {
  Table table(20, 1 * kMs);
  ScriptedService service([&](const Group& group) {
    if (group.first == 0) std::this_thread::sleep_for(std::chrono::milliseconds(40));
    return true;
  });
  Load load(table.requests(), {&service}, patient(), clock::Clock::best());
  CHECK(load.run(kKeepGoing).end == LoadEnd::completed);
  for (std::size_t place = 1; place < 20; ++place) {
    CHECK(table.issued[place] >= table.due[place]);
    CHECK(table.issued[place] < table.due[place] + 1 * kMs);
    CHECK(table.started[place] >= table.completed[place - 1]);
  }
}

TEST("Requests that were due and that no worker came to are in the queue, and later ones are not") {
  Table table(2000, 1 * kMs);
  ScriptedService service([](const Group&) {
    std::this_thread::sleep_for(std::chrono::milliseconds(100));
    return true;
  });
  Load load(table.requests(), {&service}, patient(), clock::Clock::best());
  bool goes_on = true;
  const Outcome outcome = load.run([&] { return std::exchange(goes_on, false); });
  CHECK(outcome.end == LoadEnd::interrupted);
  CHECK_EQUAL(table.issued[20], table.due[20]);
  CHECK(std::isnan(table.started[20]));
  CHECK(std::isnan(table.issued[1999]));
}

TEST("Free workers take turns at waiting for the next request, and none starts before it is due") {
  Table table(400, 0.05 * kMs);
  const std::vector<double> lengths(400, 0.08 * kMs);
  KnownService first(lengths, KnownServiceBy::sleeping, clock::Clock::best());
  KnownService second(lengths, KnownServiceBy::sleeping, clock::Clock::best());
  KnownService third(lengths, KnownServiceBy::sleeping, clock::Clock::best());
  Load load(table.requests(), {&first, &second, &third}, patient(), clock::Clock::best());
  CHECK(load.run(kKeepGoing).end == LoadEnd::completed);
  CHECK_EQUAL(table.count_completed(), 400U);
  for (std::size_t place = 0; place < 400; ++place) {
    CHECK(table.issued[place] >= table.due[place]);
    CHECK(table.started[place] >= table.issued[place]);
  }
  for (const std::int32_t number : {0, 1, 2})
    CHECK(std::count(table.worker.begin(), table.worker.end(), number) > 20);
}

TEST("A group of waiting requests has one start, one completion and one number") {
  Table table(9, 0.0);
  ScriptedService service([](const Group&) { return true; });
  Settings settings = patient();
  settings.batching = {.largest = 4, .longest_wait_ns = 300 * kMs};
  Load load(table.requests(), {&service}, settings, clock::Clock::best());
  CHECK(load.run(kKeepGoing).end == LoadEnd::completed);
  CHECK(table.group == std::vector<std::int32_t>({0, 0, 0, 0, 1, 1, 1, 1, 2}));
  CHECK_EQUAL(table.started[0], table.started[3]);
  CHECK_EQUAL(table.completed[4], table.completed[7]);
  CHECK(table.started[8] >= 300 * kMs);
}

TEST("A decision ends the load, and later requests did not happen") {
  Table table(1000, 1 * kMs);
  const std::vector<std::uint32_t> missed_at{9, 9, 9, 3};
  ScriptedService service([](const Group&) { return true; });
  Settings settings = patient();
  settings.decision = {.bound_ns = 0.0, .missed_at = missed_at, .met_at = {}};  // all are late
  Load load(table.requests(), {&service}, settings, clock::Clock::best());
  CHECK(load.run(kKeepGoing).end == LoadEnd::missed);
  CHECK_EQUAL(table.count_completed(), 3U);
  CHECK(std::isnan(table.issued.back()));
  CHECK_EQUAL(table.worker.back(), -1);
}

TEST("A service that raises ends the load, and its request is not completed") {
  Table table(10, 1 * kMs);
  ScriptedService service([](const Group& group) { return group.first != 4; });
  Load load(table.requests(), {&service}, patient(), clock::Clock::best());
  CHECK(load.run(kKeepGoing).end == LoadEnd::raised);
  CHECK_EQUAL(table.count_completed(), 4U);
}

TEST("An interrupted load keeps what was completed and lets the running call return") {
  Table table(3, 0.0);
  std::atomic<bool> in_second = false;
  std::atomic<bool> released = false;
  ScriptedService service([&](const Group& group) {
    in_second = group.first == 1;
    if (in_second) wait_until(released);
    return true;
  });
  Load load(table.requests(), {&service}, patient(), clock::Clock::best());
  bool interrupted = false;
  const Outcome outcome = load.run([&] {
    released = interrupted;  // one glance after the interruption
    const bool interrupts = in_second && !interrupted;
    interrupted = interrupted || interrupts;
    return !interrupts;
  });
  CHECK(outcome.end == LoadEnd::interrupted);
  CHECK_EQUAL(outcome.left_in_call, 0U);
  CHECK_EQUAL(table.count_completed(), 2U);
  CHECK_EQUAL(service.looked.load(), 2);
}

// The second of two requests is completed too late, though before its worker is left in the call.
struct LateLoad {
  explicit LateLoad(double give_up_ms)
      : late_by(1.4 * give_up_ms),
        load(table.requests(), {&service}, patient(give_up_ms * kMs), clock::Clock::best()) {}
  std::chrono::duration<double, std::milli> late_by;
  Table table{2, 0.0};
  ScriptedService service{[this](const Group& group) {
    if (group.first == 1) std::this_thread::sleep_for(late_by);
    return true;
  }};
  Load load;
};

TEST("What is completed too late did not happen") {
  std::size_t completed = 0;
  for (const double give_up_ms : {100.0, 400.0, 1600.0, 6400.0}) {  // where a busy machine is later than that
    auto late = std::make_unique<LateLoad>(give_up_ms);
    const Outcome outcome = late->load.run(kKeepGoing);
    CHECK(outcome.end == LoadEnd::gave_up);
    completed = late->table.count_completed();
    CHECK_EQUAL(static_cast<std::size_t>(late->service.looked.load()), completed);
    if (outcome.left_in_call > 0) {
      static auto* const left = late.release();  // the worker still uses it
      static_cast<void>(left);
      completed = 0;
    }
    if (completed == 1) break;
  }
  CHECK_EQUAL(completed, 1U);
}

// The parts of a load whose worker is left in a call must stay; static, so that they are no leak.
struct HungLoad {
  Table table{2, 0.0};
  std::atomic<bool> released = false;
  std::atomic<bool> returned = false;
  ScriptedService service{[this](const Group&) {
    wait_until(released);
    returned = true;
    return true;
  }};
  Load load{table.requests(), {&service}, patient(300 * kMs), clock::Clock::best()};
};

TEST("A worker whose call does not return is left behind and counted") {
  static auto* const hung = new HungLoad;
  const Outcome outcome = hung->load.run(kKeepGoing);
  CHECK(outcome.end == LoadEnd::gave_up);
  CHECK_EQUAL(outcome.left_in_call, 1U);
  hung->released = true;
  wait_until(hung->returned);
  std::this_thread::sleep_for(std::chrono::milliseconds(20));
  CHECK_EQUAL(hung->table.count_completed(), 0U);
  CHECK_EQUAL(hung->service.looked.load(), 0);
}

TEST("Every worker serves a single request and a full group before a warmed-up load") {
  Table table(6, 1 * kMs);
  std::vector<std::uint32_t> sizes;
  ScriptedService service([&](const Group& group) {
    sizes.push_back(group.count);
    return true;
  });
  Settings settings = patient();
  settings.batching = {.largest = 4};
  settings.warm_up = true;
  Load load(table.requests(), {&service}, settings, clock::Clock::best());
  CHECK(load.run(kKeepGoing).end == LoadEnd::completed);
  CHECK(sizes.size() > 2);
  CHECK_EQUAL(sizes[0], 1U);
  CHECK_EQUAL(sizes[1], 4U);
  CHECK_EQUAL(table.count_completed(), 6U);
}

TEST("A service that raises during the warm-up ends the load before its start") {
  Table table(3, 0.0);
  ScriptedService service([](const Group&) { return false; });
  Settings settings = patient();
  settings.warm_up = true;
  Load load(table.requests(), {&service}, settings, clock::Clock::best());
  CHECK(load.run(kKeepGoing).end == LoadEnd::raised);
  CHECK(std::isnan(table.issued[0]));
}

TEST("A load without requests is completed at once") {
  Table table(0, 0.0);
  ScriptedService service([](const Group&) { return true; });
  Settings settings = patient();
  settings.warm_up = true;
  Load load(table.requests(), {&service}, settings, clock::Clock::best());
  CHECK(load.run(kKeepGoing).end == LoadEnd::completed);
}

TEST("A ring between looking and sleeping is not lost") {
  Bell bell;
  const std::uint32_t heard = bell.rings();
  bell.ring_one();
  bell.sleep(heard);  // would never end
}

TEST("Two threads that wake each other never sleep through a ring") {
  Bell bell;
  std::atomic<int> turn = 0;
  constexpr int kTurns = 4000;
  const auto play = [&](int mine) {
    while (true) {
      const std::uint32_t heard = bell.rings();
      const int now = turn;
      if (now >= kTurns) return;
      if (now % 2 == mine) {
        ++turn;
        bell.ring_all();
      } else {
        bell.sleep(heard);
      }
    }
  };
  std::thread other(play, 1);
  play(0);
  other.join();
  CHECK_EQUAL(turn.load(), kTurns);
}

TEST_MAIN()
