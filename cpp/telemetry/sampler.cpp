#include "telemetry/sampler.hpp"

#include <pthread.h>
#include <unistd.h>

#include <algorithm>
#include <csignal>
#include <ctime>

#include "telemetry/deadlines.hpp"
#include "telemetry/recorder.hpp"
#include "telemetry/running_samplers.hpp"

namespace fairlap::telemetry {
namespace {

// The longest sleep in one piece, so that stopping never waits for a long period.
constexpr std::int64_t kLongestSleepNs = 50'000'000;

std::int64_t clock_ns(clockid_t which) noexcept {
  timespec time{};
  clock_gettime(which, &time);
  return static_cast<std::int64_t>(time.tv_sec) * 1'000'000'000 + time.tv_nsec;
}

void sleep_until(std::int64_t time_ns) noexcept {
#if defined(__linux__)
  const timespec until{static_cast<time_t>(time_ns / 1'000'000'000),
                       static_cast<long>(time_ns % 1'000'000'000)};
  clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &until, nullptr);  // woken early, the caller sleeps again
#else
  std::this_thread::sleep_for(
      std::chrono::nanoseconds(std::max<std::int64_t>(0, time_ns - clock_ns(CLOCK_MONOTONIC))));
#endif
}

// While it lives, threads that are made take no signals: the program's handlers run on the program's threads.
class SignalsHeldBack {
 public:
  SignalsHeldBack() {
    sigset_t all;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before_);
  }
  ~SignalsHeldBack() { pthread_sigmask(SIG_SETMASK, &before_, nullptr); }
  SignalsHeldBack(const SignalsHeldBack&) = delete;
  SignalsHeldBack& operator=(const SignalsHeldBack&) = delete;

 private:
  sigset_t before_{};
};

// Without a source in the fast lane there is nothing to wake up for between slow rounds.
std::chrono::nanoseconds period_of(const std::vector<std::unique_ptr<Source>>& sources,
                                   const SamplerPlan& plan) {
  if (plan.fast_period.count() <= 0 || plan.slow_period < plan.fast_period) {
    throw std::invalid_argument(
        "a sampler's fast period must be longer than nothing and no longer than the slow one");
  }
  for (const auto& source : sources) {
    if (source->present() && source->has(Lane::fast)) return plan.fast_period;
  }
  return plan.slow_period;
}

}  // namespace

Sampler::Sampler(std::vector<std::unique_ptr<Source>> sources, const clock::Clock& on_clock,
                 const SamplerPlan& plan)
    : sources_(std::move(sources)),
      clock_(on_clock),
      plan_(plan),
      period_(period_of(sources_, plan)),
      rounds_per_slow_(static_cast<std::uint64_t>((plan.slow_period + period_ / 2) / period_)),
      ring_(plan.readings),
      marks_(plan.marks),
      owner_process_(::getpid()) {
  // A wrong plan is refused here, where the caller can hear it, and not on the thread.
  const Deadlines proof(0, period_.count(), plan.jitter_share, plan.seed);
}

Sampler::~Sampler() { stop(); }

void Sampler::start() {
  refuse_in_child();
  const std::lock_guard lock(control_);
  if (thread_ != nullptr) return;
  read_all(true);
  ending_.store(false);
  cpu_before_ns_ = cpu_ns_.load();
  enlist(*this);
  try {
    const SignalsHeldBack held_back;
    thread_ = std::make_unique<std::thread>([this] { run(); });
  } catch (...) {
    strike_off(*this);
    throw;
  }
  running_.store(true);
}

void Sampler::stop() {
  if (forked()) {
    // The thread is the parent's. Its handle here stands for nothing: joining it would hang, and destroying
    // it would end the process.
    thread_.release();  // NOLINT(bugprone-unused-return-value)
    return;
  }
  const std::lock_guard lock(control_);
  if (thread_ == nullptr) return;
  ending_.store(true);
  thread_->join();
  thread_.reset();
  running_.store(false);
  strike_off(*this);
  read_all(true);
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
  return {rounds_.load(),      slow_rounds_.load(),       missed_.load(), ring_.overflowed(),
          marks_.overflowed(), worst_lateness_ns_.load(), cpu_ns_.load()};
}

void Sampler::read_all(bool slow) noexcept {
  Recorder recorder(ring_, clock_);
  for (std::uint32_t i = 0; i < sources_.size(); ++i) {
    recorder.speak_for(i);
    sources_[i]->read(Lane::fast, recorder);
    if (slow) sources_[i]->read(Lane::slow, recorder);
  }
  rounds_.fetch_add(1);
  if (slow) slow_rounds_.fetch_add(1);
}

void Sampler::take_account() noexcept { cpu_ns_.store(cpu_before_ns_ + clock_ns(CLOCK_THREAD_CPUTIME_ID)); }

void Sampler::run() noexcept {
#if defined(__linux__)
  pthread_setname_np(pthread_self(), "fairlap-sampler");
#endif
  const std::int64_t start_ns = clock_ns(CLOCK_MONOTONIC) + period_.count();
  Deadlines deadlines(start_ns, period_.count(), plan_.jitter_share, plan_.seed);
  // By number of the deadline, and not of the round, or misses would thin the slow lane out.
  std::uint64_t next_slow = rounds_per_slow_ - 1;
  while (!ending_.load()) {
    const std::int64_t now_ns = clock_ns(CLOCK_MONOTONIC);
    if (now_ns < deadlines.next_ns()) {
      sleep_until(std::min(deadlines.next_ns(), now_ns + kLongestSleepNs));
      continue;
    }
    worst_lateness_ns_.store(std::max(worst_lateness_ns_.load(), now_ns - deadlines.next_ns()));
    const bool slow = deadlines.number() >= next_slow;
    if (slow) next_slow += ((deadlines.number() - next_slow) / rounds_per_slow_ + 1) * rounds_per_slow_;
    read_all(slow);
    if (slow) take_account();
    missed_.fetch_add(deadlines.advance(clock_ns(CLOCK_MONOTONIC)));
  }
  take_account();
}

}  // namespace fairlap::telemetry
