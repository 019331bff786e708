#include "loop/measured_loop.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <memory>
#include <string>

#include "loop/robust_interval.hpp"
#include "loop/warm_up.hpp"

namespace fairlap::loop {
namespace {

constexpr double slice_length_ns = 1e6;       // how often counters are read and Ctrl-C is looked for
constexpr std::size_t groups_at_most = 4096;  // then neighbours are merged
constexpr std::size_t samples_unknown = std::size_t{1} << 20U;
constexpr std::size_t samples_at_most = std::size_t{1} << 23U;
constexpr std::size_t samples_for_target = 40;

std::size_t capacity_for(const Plan& plan, const WarmedUp& warmed_up) {
  if (plan.seconds <= 0.0) return plan.samples > 0 ? plan.samples : samples_unknown;
  const std::size_t asked = plan.samples > 0 ? plan.samples : samples_at_most;
  if (warmed_up.sample_period_ns <= 0.0) return std::min(asked, samples_unknown);
  const double expected = plan.seconds * 1e9 / warmed_up.sample_period_ns;
  // The period was seen over a handful of samples only, so the room is generous; pages are cheap.
  const double with_room = std::min(4.0 * expected + 1024.0, static_cast<double>(samples_at_most));
  return std::min(asked, static_cast<std::size_t>(with_room));
}

// Stops on the size of the spread alone; it never sees a difference, so it cannot favour one.
class TargetWatch {
 public:
  TargetWatch(const Plan& plan, double quantum_ticks)
      : target_(plan.target_half_width), quantum_(quantum_ticks) {}

  bool reached(const Record& record) {
    if (target_ <= 0.0 || record.taken < next_look_) return false;
    next_look_ = record.taken + record.taken / 4;
    const RobustInterval interval = interval_of_median(
        record.wall.as<const std::uint64_t>().first(record.taken), record.scratch.as<double>());
    const double half_width = std::max((interval.high - interval.low) / 2, quantum_ / 2);
    return half_width <= target_ * interval.median;
  }

 private:
  double target_;
  double quantum_;
  std::size_t next_look_ = samples_for_target;
};

// In place: a tick count and a double are both eight bytes, and a double begins to live where a tick
// count ended.
std::size_t ticks_to_ns(std::span<std::uint64_t> samples, double ns_per_tick, double correction_ns,
                        double calls) {
  std::size_t backward = 0;
  for (std::uint64_t& sample : samples) {
    const auto ticks = static_cast<std::int64_t>(sample);
    double ns = (static_cast<double>(ticks) * ns_per_tick - correction_ns) / calls;
    if (ticks < 0) {
      ns = std::numeric_limits<double>::quiet_NaN();
      ++backward;
    }
    std::construct_at(reinterpret_cast<double*>(&sample), ns);
  }
  return backward;
}

class Run {
 public:
  Run(SliceTaker& taker, const clock::Clock& clock, const Plan& plan, Record& record)
      : taker_(taker),
        clock_(clock),
        plan_(plan),
        record_(record),
        target_(plan, clock.floor().quantum_ns / clock.calibration().ns_per_tick),
        begin_(clock.start()) {}

  void take_all_samples() {
    while (true) {
      const Interruption why = take_one_slice();
      if (why == Interruption::raised) return stop(StopReason::raised);
      if (why == Interruption::stop_requested) return stop(StopReason::stop_requested);
      if (plan_.samples > 0 && record_.taken >= plan_.samples) return stop(StopReason::samples);
      if (target_.reached(record_)) return stop(StopReason::target);
      if (plan_.seconds > 0.0 && seconds_left() <= 0.0) return stop(StopReason::seconds);
      if (record_.taken >= record_.capacity) return stop(StopReason::full);
    }
  }

 private:
  [[nodiscard]] double elapsed_ns() const { return clock_.ns_of(clock_.finish() - begin_); }
  [[nodiscard]] double seconds_left() const { return plan_.seconds - elapsed_ns() / 1e9; }

  void stop(StopReason reason) {
    record_.stopped_by = reason;
    record_.elapsed_ns = elapsed_ns();
  }

  Interruption take_one_slice() {
    const double length_ns =
        plan_.seconds > 0.0 ? std::clamp(seconds_left() * 1e9, 0.0, slice_length_ns) : slice_length_ns;
    const Slice slice{
        record_.wall.as<std::uint64_t>().data() + record_.taken,
        record_.has_completion ? record_.host_issue.as<std::uint64_t>().data() + record_.taken : nullptr,
        record_.capacity - record_.taken, record_.calls_per_sample, clock_.ticks_of(length_ns)};
    const Counters before = Counters::read();
    const SliceEnd end = taker_.take(slice);
    const Counters after = Counters::read();
    Group group = slice_between(before, after);
    if (last_cpu_ >= 0 && before.cpu != last_cpu_) ++group.migrations;
    last_cpu_ = after.cpu;
    group.first_sample = static_cast<std::int64_t>(record_.taken);
    group.samples = static_cast<std::int64_t>(end.taken);
    group.start_ns = static_cast<std::int64_t>(clock_.ns_of(end.first_ticks - begin_));
    group.elapsed_ns = static_cast<std::int64_t>(clock_.ns_of(end.last_ticks - end.first_ticks));
    record_.groups.add(group);
    record_.taken += end.taken;
    return end.why;
  }

  SliceTaker& taker_;
  const clock::Clock& clock_;
  const Plan& plan_;
  Record& record_;
  TargetWatch target_;
  std::uint64_t begin_;
  std::int64_t last_cpu_ = -1;
};

void to_nanoseconds(Record& record, const clock::Clock& clock) {
  const double ns_per_tick = clock.calibration().ns_per_tick;
  const auto calls = static_cast<double>(record.calls_per_sample);
  record.correction_ns = clock.floor().bias_ns;
  record.backward = ticks_to_ns(record.wall.as<std::uint64_t>().first(record.taken), ns_per_tick,
                                record.correction_ns, calls);
  if (!record.has_completion) return;
  ticks_to_ns(record.host_issue.as<std::uint64_t>().first(record.taken), ns_per_tick, record.correction_ns,
              calls);
}

}  // namespace

Record::Record(std::size_t places, bool with_completion, bool with_target)
    : capacity(places),
      has_completion(with_completion),
      wall(places * sizeof(std::uint64_t)),
      host_issue(with_completion ? places * sizeof(std::uint64_t) : 0),
      scratch(with_target ? batch_scratch_size(places) * sizeof(double) : 0),
      groups(std::min(places, groups_at_most)) {}

std::unique_ptr<Record> run(SliceTaker& taker, const clock::Clock& clock, const Plan& plan) {
  const WarmedUp warmed_up = warm_up(taker, clock, plan);
  auto record = std::make_unique<Record>(capacity_for(plan, warmed_up), taker.has_completion(),
                                         plan.target_half_width > 0.0);
  record->warm_up = warmed_up.done;
  record->calls_per_sample = warmed_up.calls_per_sample;
  if (warmed_up.why != Interruption::none) {
    record->stopped_by =
        warmed_up.why == Interruption::raised ? StopReason::raised : StopReason::stop_requested;
    return record;
  }
  const std::string source_before = clock::kernel_clock_source();
  const std::int64_t stolen_before_ns = stolen_ns();
  const clock::Anchor from = clock::take_anchor(clock.source());
  Run(taker, clock, plan, *record).take_all_samples();
  record->clock_check = clock::cross_check(clock.calibration(), from, clock::take_anchor(clock.source()));
  record->clock_source_changed = clock::kernel_clock_source() != source_before;
  if (stolen_before_ns >= 0) record->stolen_ns = stolen_ns() - stolen_before_ns;
  to_nanoseconds(*record, clock);
  return record;
}

}  // namespace fairlap::loop
