#include "telemetry/sampling/sampler.hpp"

#include <pthread.h>
#include <unistd.h>

#include <algorithm>
#include <iterator>

#include "clock/system_clock.hpp"
#include "telemetry/sampling/call_budget.hpp"
#include "telemetry/sampling/deadlines.hpp"
#include "telemetry/sampling/every_few.hpp"
#include "telemetry/sampling/recorder.hpp"
#include "threads/signals_blocked.hpp"

namespace fairlap::telemetry {
namespace {

// Without a source in a lane there is nothing to wake up for at its period.
std::chrono::nanoseconds period_of(const std::vector<std::unique_ptr<Source>>& sources,
                                   const SamplerSettings& settings) {
  if (settings.fast_period.count() <= 0 || settings.slow_period < settings.fast_period) {
    throw std::invalid_argument(
        "a sampler's fast period must be longer than nothing and no longer than the slow one");
  }
  if (settings.rare_period < settings.slow_period) {
    throw std::invalid_argument("a sampler's slow period must be no longer than the rare one");
  }
  if (!(settings.most_call_share > 0.0 && settings.most_call_share <= 1.0)) {
    throw std::invalid_argument("the share of wall time for calls must be above 0 and at most 1");
  }
  const auto anybody_in = [&](Lane lane) {
    return std::any_of(sources.begin(), sources.end(),
                       [&](const auto& source) { return source->present() && source->has(lane); });
  };
  if (anybody_in(Lane::fast)) return settings.fast_period;
  return anybody_in(Lane::slow) ? settings.slow_period : settings.rare_period;
}

// Of wall time: what is expensive to read is read at the ends of a region anyway, by start() and stop().
constexpr double kMostShareOfRareCalls = 0.001;

// For calibration.
constexpr auto kLookEvery = std::chrono::milliseconds(1);
constexpr std::size_t kMostFieldsReadTogether = 4096;  // where a source cannot read one alone

std::uint64_t rounds_in(std::chrono::nanoseconds whole, std::chrono::nanoseconds period) {
  return std::max<std::uint64_t>(1, static_cast<std::uint64_t>((whole + period / 2) / period));
}

}  // namespace

Sampler::Sampler(std::vector<std::unique_ptr<Source>> sources, const clock::Clock& on_clock,
                 const SamplerSettings& settings)
    : sources_(std::move(sources)),
      clock_(on_clock),
      settings_(settings),
      period_(period_of(sources_, settings)),
      ring_(settings.readings),
      marks_(settings.marks),
      owner_process_(::getpid()),
      control_(std::make_shared<SamplerControl>()) {
  // A wrong settings is refused here, where the caller can hear it, and not on the thread.
  const Deadlines proof(0, period_.count(), settings.jitter_share, settings.seed);
  control_->sampler = this;
}

Sampler::~Sampler() {
  stop();
  if (forked()) return;  // another thread of the parent's may have held the lock at the fork
  const std::lock_guard lock(control_->mutex);
  control_->sampler = nullptr;
}

void Sampler::start() {
  refuse_in_child();
  const std::lock_guard lock(control_->mutex);
  if (thread_ != nullptr) return;
  read_all({});
  sleep_.rearm();
  cpu_before_ns_ = cpu_ns_.load();
  enlist(control_);
  try {
    const threads::SignalsBlocked blocked;
    thread_ = std::make_unique<std::thread>([this] { run(); });
  } catch (...) {
    strike_off(*control_);
    throw;
  }
  running_.store(true);
}

void Sampler::stop() {
  if (forked()) {
    // The thread is the parent's. Its handle here refers to nothing: joining it would hang, and destroying
    // it would end the process.
    thread_.release();  // NOLINT(bugprone-unused-return-value)
    return;
  }
  const std::lock_guard lock(control_->mutex);
  end_thread();
}

void Sampler::end_thread() noexcept {
  if (thread_ == nullptr) return;
  sleep_.wake();
  thread_->join();
  thread_.reset();
  running_.store(false);
  strike_off(*control_);
  read_all({});
}

std::vector<Reading> Sampler::read_each_alone(std::chrono::nanoseconds length) {
  refuse_in_child();
  const std::lock_guard lock(control_->mutex);
  if (thread_ != nullptr) throw NotNow();
  std::vector<Reading> readings;
  const auto end = std::chrono::steady_clock::now() + length;
  for (auto next = end - length; next < end;) {
    std::this_thread::sleep_until(next);
    look_at_each(readings);
    if (readings.empty()) break;  // nothing is present
    next = std::max(next + kLookEvery, std::chrono::steady_clock::now());
  }
  return readings;
}

void Sampler::look_at_each(std::vector<Reading>& into) {
  Ring ring(kMostFieldsReadTogether);
  Recorder recorder(ring, clock_);
  std::vector<Reading> taken(ring.capacity());
  for (std::uint32_t s = 0; s < sources_.size(); ++s) {
    if (!sources_[s]->present()) continue;
    recorder.speak_for(s);
    for (std::uint32_t field = 0; field < sources_[s]->fields().size(); ++field) {
      if (!sources_[s]->fields()[field].present()) continue;
      sources_[s]->read_alone(field, recorder);
      const auto end = taken.begin() + static_cast<std::ptrdiff_t>(ring.take(taken));
      std::copy_if(taken.begin(), end, std::back_inserter(into),
                   [&](const Reading& reading) { return reading.field == field; });
    }
  }
}

void Sampler::set_fast_period(std::chrono::nanoseconds wanted) {
  const std::lock_guard lock(control_->mutex);
  if (thread_ != nullptr) throw NotNow();
  settings_.fast_period = std::min(wanted, settings_.slow_period);
  period_ = period_of(sources_, settings_);
}

bool Sampler::forked() const noexcept { return ::getpid() != owner_process_; }

bool Sampler::running() const noexcept { return running_.load() && !forked(); }

void Sampler::refuse_in_child() const {
  if (forked()) throw ForkedSampler();
}

std::int64_t Sampler::mark(std::uint64_t label) noexcept {
  const std::int64_t now_ns = engine_now_ns(clock_);
  marks_.set({now_ns, label});
  return now_ns;
}

void Sampler::collect(std::vector<Reading>& into) {
  refuse_in_child();  // before the lock: another thread of the parent may have held it at the fork
  const std::lock_guard lock(collect_);
  const std::size_t before = into.size();
  into.resize(before + ring_.size());
  into.resize(before + ring_.take(std::span(into).subspan(before)));
}

void Sampler::collect(std::vector<Mark>& into) {
  refuse_in_child();
  const std::lock_guard lock(collect_);
  Mark mark;
  while (marks_.take({&mark, 1}) == 1) into.push_back(mark);
}

SamplerCounts Sampler::counts() const noexcept {
  SamplerCounts counts;
  counts.rounds = rounds_.load();
  counts.slow_rounds = slow_rounds_.load();
  counts.rare_rounds = rare_rounds_.load();
  counts.held_back = held_back_.load();
  counts.missed = missed_.load();
  counts.overflowed_readings = ring_.overflowed();
  counts.overflowed_marks = marks_.overflowed();
  counts.worst_lateness_ns = worst_lateness_ns_.load();
  counts.cpu_ns = cpu_ns_.load();
  counts.calls_ns = calls_ns_.load();
  return counts;
}

std::int64_t Sampler::read_lane(Lane lane) noexcept {
  Recorder recorder(ring_, clock_);
  const std::int64_t before_ns = engine_now_ns(clock_);
  for (std::uint32_t i = 0; i < sources_.size(); ++i) {
    recorder.speak_for(i);
    sources_[i]->read(lane, recorder);
  }
  return engine_now_ns(clock_) - before_ns;
}

Sampler::Costs Sampler::read_all(const Lanes& lanes) noexcept {
  // Power first, in all devices: its moments are then as even as they can be.
  const std::int64_t fast_ns = lanes.fast ? read_lane(Lane::fast) : 0;
  const std::int64_t slow_ns = lanes.slow ? read_lane(Lane::slow) : 0;
  const std::int64_t rare_ns = lanes.rare ? read_lane(Lane::rare) : 0;
  calls_ns_.fetch_add(fast_ns + slow_ns + rare_ns);
  rounds_.fetch_add(1);
  if (lanes.slow) slow_rounds_.fetch_add(1);
  if (lanes.rare) rare_rounds_.fetch_add(1);
  return {fast_ns, rare_ns};
}

void Sampler::take_account() noexcept { cpu_ns_.store(cpu_before_ns_ + clock::thread_cpu_ns()); }

void Sampler::run() noexcept {
#if defined(__linux__)
  pthread_setname_np(pthread_self(), "fairlap-sampler");
#endif
  Deadlines deadlines(clock::monotonic_now_ns() + period_.count(), period_.count(), settings_.jitter_share,
                      settings_.seed);
  EveryFew slow(rounds_in(settings_.slow_period, period_));
  EveryFew rare(rounds_in(settings_.rare_period, period_));
  CallBudget budget(settings_.most_call_share, period_.count());
  CallBudget rare_budget(kMostShareOfRareCalls, settings_.rare_period.count());
  while (!sleep_.woken()) {
    const std::int64_t now_ns = clock::monotonic_now_ns();
    if (now_ns < deadlines.next_ns()) {
      sleep_.until(deadlines.next_ns());
      continue;
    }
    worst_lateness_ns_.store(std::max(worst_lateness_ns_.load(), now_ns - deadlines.next_ns()));
    const Lanes lanes{budget.due(), slow.due(deadlines.number()),
                      rare.due(deadlines.number()) && rare_budget.due()};
    if (!lanes.fast) held_back_.fetch_add(1);
    const Costs costs = read_all(lanes);
    if (lanes.fast) budget.spent(costs.fast_ns);
    if (lanes.rare) rare_budget.spent(costs.rare_ns);
    if (lanes.slow) take_account();
    missed_.fetch_add(deadlines.advance(clock::monotonic_now_ns()));
  }
  take_account();
}

}  // namespace fairlap::telemetry
