#include "load/load.hpp"

#include <algorithm>
#include <chrono>

#include "clock/system_clock.hpp"
#include "threads/signals_blocked.hpp"

namespace fairlap::load {
namespace {

constexpr double kLeadNs = 1e6;      // for the threads to get ready before the first request
constexpr double kGlanceNs = 50e6;   // how often the calling thread looks for Ctrl-C
constexpr double kSettlingNs = 1e6;  // how often it looks whether the threads have ended

}  // namespace

Load::Load(const Requests& requests, const std::vector<Service*>& services, const Settings& settings,
           const clock::Clock& on)
    : queue_(requests.due_ns, settings.batching),
      requests_(requests),
      settings_(settings),
      clock_(on),
      tally_(settings.decision),
      give_up_at_ns_((requests.count() == 0 ? 0.0 : requests.due_ns.back()) + settings.give_up_ns) {
  for (Service* const service : services) workers_.emplace_back().service = service;
}

Outcome Load::run(const std::function<bool()>& keep_going) {
  start_threads();
  const auto all_ready = [this] { return ready_.load() == workers_.size(); };
  watch(all_ready, clock_.now_ns() + settings_.give_up_ns, keep_going);
  if (!ended()) {
    clock_.start_in(kLeadNs);
    started_.store(true);
    starting_.ring_all();
    if (requests_.count() == 0) end(LoadEnd::completed);
    watch([] { return false; }, give_up_at_ns_, keep_going);
  }
  Outcome out{.end = end_.load(), .elapsed_ns = clock_.now_ns()};
  out.left_in_call = end_threads(keep_going);
  if (started_.load()) stamp_what_waits();
  return out;
}

void Load::start_threads() {
  const threads::SignalsBlocked blocked;
  try {
    std::int32_t number = 0;
    for (Worker& worker : workers_) worker.thread = std::thread([this, mine = number++] { work(mine); });
  } catch (...) {  // no thread to be had
    end(LoadEnd::interrupted);
    for (Worker& worker : workers_) {
      if (worker.thread.joinable()) worker.thread.join();
    }
    throw;
  }
}

// Until something is reached, the load has ended or this time has come, which ends it.
template <class Reached>
void Load::watch(const Reached& reached, double until_ns, const std::function<bool()>& keep_going) {
  double glance_ns = clock_.now_ns() + kGlanceNs;
  while (true) {
    const std::uint32_t heard = reporting_.rings();
    if (ended() || reached()) return;
    const double now_ns = clock_.now_ns();
    if (now_ns >= until_ns) return end(LoadEnd::gave_up);
    if (now_ns >= glance_ns) {
      if (!keep_going()) return end(LoadEnd::interrupted);
      glance_ns = clock_.now_ns() + kGlanceNs;
    }
    reporting_.sleep(heard, clock_.monotonic_at(std::min(until_ns, glance_ns)));
  }
}

void Load::end(LoadEnd why) noexcept {
  LoadEnd running = LoadEnd::running;
  if (!end_.compare_exchange_strong(running, why)) return;
  for (Bell* const bell : {&starting_, &waiting_, &reporting_}) bell->ring_all();
}

// Returns how many workers were left in their call.
std::size_t Load::end_threads(const std::function<bool()>& keep_going) {
  const double leave_ns = clock_.now_ns() + settings_.give_up_ns;
  double glance_ns = clock_.now_ns() + kGlanceNs;
  bool patient = true;
  std::size_t left = 0;
  for (Worker& worker : workers_) {
    while (true) {
      const std::uint32_t heard = reporting_.rings();
      Phase phase = worker.phase.load();
      if (phase == Phase::ended) {
        worker.thread.join();
        break;
      }
      if (clock_.now_ns() >= glance_ns) {
        patient = patient && keep_going();
        glance_ns = clock_.now_ns() + kGlanceNs;
      }
      patient = patient && clock_.now_ns() < leave_ns;
      if (!patient && phase == Phase::in_call && worker.phase.compare_exchange_strong(phase, Phase::left)) {
        worker.thread.detach();
        ++left;
        break;
      }
      const double look_ns = clock_.now_ns() + kSettlingNs;
      reporting_.sleep(heard, clock_.monotonic_at(patient ? std::min(leave_ns, glance_ns) : look_ns));
    }
  }
  return left;
}

bool Load::wait_for_start() {
  while (true) {
    const std::uint32_t heard = starting_.rings();
    if (ended()) return false;
    if (started_.load()) return true;
    starting_.sleep(heard);
  }
}

void Load::work(std::int32_t number) {
  Worker& worker = workers_[static_cast<std::size_t>(number)];
  worker.service->enter();
  bool here = !settings_.warm_up || warm_up(worker);
  ready_.fetch_add(1);
  reporting_.ring_all();
  if (here && wait_for_start()) here = serve_until_end(worker, number);
  worker.service->leave();
  if (!here) return;
  worker.phase.store(Phase::ended);
  reporting_.ring_all();
}

bool Load::serve_until_end(Worker& worker, std::int32_t number) {
  bool leads = false;
  double free_ns = 0.0;
  while (true) {
    const std::uint32_t heard = waiting_.rings();
    if (ended()) return true;
    const double now_ns = clock_.now_ns();
    const RequestQueue::Turn turn = queue_.next(now_ns);
    if (turn.group.count > 0) {
      if (leads) led_.store(false);
      if (leads || turn.leaves_others) waiting_.ring_one();
      leads = false;
      stamp_issued(turn, free_ns, now_ns);
      if (!serve(worker, number, turn.group)) return false;
      free_ns = clock_.now_ns();
      continue;
    }
    leads = leads || !led_.exchange(true);
    if (leads) {
      wait_until(turn.look_again_ns, heard);
    } else {
      waiting_.sleep(heard);
    }
  }
}

// Later than it was due by as much as a free worker took it late.
void Load::stamp_issued(const RequestQueue::Turn& turn, double free_ns, double now_ns) {
  const double late_ns = now_ns - std::max(turn.closed_ns, std::min(free_ns, now_ns));
  for (std::size_t place = turn.group.first; place < turn.group.first + turn.group.count; ++place)
    requests_.issued_ns[place] = std::min(requests_.due_ns[place] + late_ns, now_ns);
}

// The kernel wakes a thread some tens of microseconds late; the last part of the way is spun, on the core
// that serves the request then. The contestant's own sleeps stay as they are.
void Load::wait_until(double look_again_ns, std::uint32_t heard) noexcept {
  if (look_again_ns - clock_.now_ns() > settings_.spin_ns) {
    end_sleeps_on_time();
    waiting_.sleep(heard, clock_.monotonic_at(look_again_ns - settings_.spin_ns));
    end_sleeps_as_usual();
  }
  if (look_again_ns - clock_.now_ns() > settings_.spin_ns) return;  // it was rung
  while (clock_.now_ns() < look_again_ns && !ended()) relax();
}

bool Load::serve(Worker& worker, std::int32_t number, const Group& group) {
  const double started_ns = clock_.now_ns();
  for (std::size_t place = group.first; place < group.first + group.count; ++place) {
    requests_.worker[place] = number;
    requests_.group[place] = static_cast<std::int32_t>(group.number);
    requests_.started_ns[place] = started_ns;
  }
  worker.phase.store(Phase::in_call);
  const bool answered = worker.service->serve(group);
  const double completed_ns = clock_.now_ns();
  const bool here = came_back(worker);
  const bool in_time = completed_ns <= give_up_at_ns_;
  if (here && answered && in_time) record(group, completed_ns);
  if (here && !answered) end(LoadEnd::raised);
  if (here && !in_time) end(LoadEnd::gave_up);
  return settle(worker, group, here && answered && in_time) && here;
}

void Load::record(const Group& group, double completed_ns) {
  std::uint32_t late = 0;
  for (std::size_t place = group.first; place < group.first + group.count; ++place) {
    requests_.completed_ns[place] = completed_ns;
    if (completed_ns - requests_.due_ns[place] > tally_.bound_ns()) ++late;
  }
  const Tally::Counted counted = tally_.add(group.count, late);
  if (counted.decided == Decided::met) end(LoadEnd::met);
  if (counted.decided == Decided::missed) end(LoadEnd::missed);
  if (counted.completed == requests_.count()) end(LoadEnd::completed);
}

// Requests that were due and that no worker took before the end.
void Load::stamp_what_waits() noexcept {
  for (std::size_t place = queue_.taken(); place < requests_.count(); ++place) {
    if (requests_.due_ns[place] > clock_.now_ns()) return;
    requests_.issued_ns[place] = requests_.due_ns[place];
  }
}

bool Load::warm_up(Worker& worker) {
  const auto most = std::min(static_cast<std::uint32_t>(requests_.count()), settings_.batching.largest);
  for (std::uint32_t count = 1; count <= most; count = count == most ? most + 1 : most) {
    const Group group{.count = count};
    worker.phase.store(Phase::in_call);
    const bool answered = worker.service->serve(group);
    const bool here = came_back(worker);
    if (here && !answered) end(LoadEnd::raised);
    if (!settle(worker, group, false) || !here) return false;
  }
  return true;
}

// False when the thread was left behind, and nothing waits for it any more.
bool Load::came_back(Worker& worker) {
  Phase in_call = Phase::in_call;
  return worker.phase.compare_exchange_strong(in_call, Phase::free);
}

bool Load::settle(Worker& worker, const Group& group, bool may_look) {
  if (worker.phase.load() == Phase::left) {
    worker.service->settle(group, false);
    return false;
  }
  worker.phase.store(Phase::in_call);
  const bool looked = worker.service->settle(group, may_look);
  if (!came_back(worker)) return false;
  if (!looked) end(LoadEnd::raised);
  return true;
}

}  // namespace fairlap::load
