#include "loop/run.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <memory>
#include <string>

#include "loop/robust_interval.hpp"
#include "loop/warm_up.hpp"

namespace fairlap::loop {
namespace {

constexpr double kSliceLengthNs = 1e6;       // how often counters are read and Ctrl-C is looked for
constexpr std::size_t kGroupsAtMost = 4096;  // then neighbours are merged
constexpr std::size_t kGroupsAtLeast = 16;
constexpr std::size_t kSamplesUnknown = std::size_t{1} << 20U;
constexpr std::size_t kSamplesAtMost = std::size_t{1} << 23U;

std::size_t capacity_for(const Settings& settings, const WarmedUp& warmed_up) {
  if (settings.stop.seconds <= 0.0)
    return settings.stop.samples > 0 ? settings.stop.samples : kSamplesUnknown;
  const std::size_t asked = settings.stop.samples > 0 ? settings.stop.samples : kSamplesAtMost;
  if (warmed_up.sample_period_ns <= 0.0) return std::min(asked, kSamplesUnknown);
  const double expected = settings.stop.seconds * 1e9 / warmed_up.sample_period_ns;
  // The period was seen over a handful of samples only, so the room is generous; pages are cheap.
  const double with_room = std::min(4.0 * expected + 1024.0, static_cast<double>(kSamplesAtMost));
  return std::min(asked, static_cast<std::size_t>(with_room));
}

// Short runs have room for every slice, and few pages to write to before they begin.
std::size_t groups_for(const Settings& settings, const WarmedUp& warmed_up, std::size_t places) {
  const double of_samples_ns = static_cast<double>(settings.stop.samples) * warmed_up.sample_period_ns;
  const double slices =
      (settings.stop.seconds > 0.0 ? settings.stop.seconds * 1e9 : of_samples_ns) / kSliceLengthNs;
  const std::size_t at_most = std::min(places, kGroupsAtMost);
  if (slices <= 0.0 || slices >= static_cast<double>(kGroupsAtMost)) return at_most;
  return std::min(at_most, kGroupsAtLeast + 2 * static_cast<std::size_t>(slices));
}

StopReason reason_of(Interruption why) noexcept {
  return why == Interruption::raised ? StopReason::raised : StopReason::interrupt;
}

class Run {
 public:
  Run(SliceTaker& taker, const clock::Clock& clock, const Settings& settings, Record& record)
      : taker_(taker),
        clock_(clock),
        settings_(settings),
        record_(record),
        check_(settings.stop, record.capacity, clock.floor().quantum_ns / clock.calibration().ns_per_tick),
        begin_(clock.start()) {}

  void take_all_samples() {
    while (true) {
      const Interruption drawn = make_drawn_calls(share_done());
      const Interruption why = drawn == Interruption::none ? take_one_slice() : drawn;
      if (why != Interruption::none) return stop(reason_of(why));
      const auto reached = check_.reached(
          record_.taken, record_.taken, [this] { return elapsed_ns() / 1e9; },
          [this] { return interval_of_median(samples_taken(), record_.scratch.as<double>()); });
      if (reached) {
        stop(*reached);
        const Interruption last = make_drawn_calls(1.0);
        if (last != Interruption::none) record_.stopped_by = reason_of(last);
        return;
      }
    }
  }

 private:
  [[nodiscard]] double elapsed_ns() const { return clock_.ns_of(clock_.finish() - begin_); }
  [[nodiscard]] std::span<const std::uint64_t> samples_taken() const {
    return record_.wall.as<const std::uint64_t>().first(record_.taken);
  }
  [[nodiscard]] double seconds_left() const { return settings_.stop.seconds - elapsed_ns() / 1e9; }

  void stop(StopReason reason) {
    record_.stopped_by = reason;
    record_.elapsed_ns = elapsed_ns();
  }

  [[nodiscard]] double share_done() const {
    const StopRule& rule = settings_.stop;
    const double of_time = rule.seconds > 0.0 ? elapsed_ns() / 1e9 / rule.seconds : 0.0;
    const auto taken = static_cast<double>(record_.taken);
    return std::max(of_time, rule.samples > 0 ? taken / static_cast<double>(rule.samples) : 0.0);
  }

  [[nodiscard]] std::size_t room_before_drawn_call() const {
    const std::size_t room = record_.capacity - record_.taken;
    if (settings_.stop.samples == 0 || drawn_ >= settings_.drawn_at.size()) return room;
    const double next = std::ceil(settings_.drawn_at[drawn_] * static_cast<double>(settings_.stop.samples));
    const auto sample = static_cast<std::size_t>(std::max(next, 0.0));
    return sample > record_.taken ? std::min(room, sample - record_.taken) : room;
  }

  // Those that are due. What they take is not part of the run's time.
  Interruption make_drawn_calls(double share) {
    while (drawn_ < settings_.drawn_at.size() && share >= settings_.drawn_at[drawn_]) {
      const std::uint64_t paused = clock_.finish();
      const Interruption why = make_drawn_call(drawn_++);
      begin_ += clock_.finish() - paused;
      if (why != Interruption::none) return why;
    }
    return Interruption::none;
  }

  Interruption make_drawn_call(std::size_t number) {
    if (!taker_.begin_drawn(number)) return Interruption::raised;
    std::uint64_t wall = 0;
    std::uint64_t host_issue = 0;
    const SliceEnd end = taker_.take({.wall_ticks = &wall, .host_issue_ticks = &host_issue, .room = 1});
    const bool looked_at = taker_.end_drawn(number, clock_.ns_of(wall) - clock_.floor().bias_ns);
    if (end.why != Interruption::none) return end.why;
    return looked_at ? Interruption::none : Interruption::raised;
  }

  Interruption take_one_slice() {
    const double length_ns =
        settings_.stop.seconds > 0.0 ? std::clamp(seconds_left() * 1e9, 0.0, kSliceLengthNs) : kSliceLengthNs;
    std::uint64_t* const host_issue =
        record_.has_completion ? record_.host_issue.as<std::uint64_t>().data() + record_.taken : nullptr;
    const Slice slice{.wall_ticks = record_.wall.as<std::uint64_t>().data() + record_.taken,
                      .host_issue_ticks = host_issue,
                      .room = room_before_drawn_call(),
                      .calls_per_sample = record_.calls_per_sample,
                      .length_ticks = clock_.ticks_of(length_ns)};
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
  const Settings& settings_;
  Record& record_;
  StopCheck check_;
  std::uint64_t begin_;
  std::int64_t last_cpu_ = -1;
  std::size_t drawn_ = 0;
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

std::size_t ticks_to_ns(std::span<std::uint64_t> samples, double ns_per_tick, double correction_ns,
                        double calls) {
  const double ns_per_tick_and_call = ns_per_tick / calls;
  const double correction_per_call_ns = correction_ns / calls;
  std::size_t backward = 0;
  for (std::uint64_t& sample : samples) {
    const auto ticks = static_cast<std::int64_t>(sample);
    double ns = static_cast<double>(ticks) * ns_per_tick_and_call - correction_per_call_ns;
    if (ticks < 0) [[unlikely]] {
      ns = std::numeric_limits<double>::quiet_NaN();
      ++backward;
    }
    std::construct_at(reinterpret_cast<double*>(&sample), ns);
  }
  return backward;
}

Record::Record(std::size_t places, std::size_t group_places, bool with_completion, bool with_target)
    : capacity(places),
      has_completion(with_completion),
      wall(places * sizeof(std::uint64_t)),
      host_issue(with_completion ? places * sizeof(std::uint64_t) : 0),
      scratch(with_target ? batch_scratch_size(places) * sizeof(double) : 0),
      groups(group_places) {}

std::unique_ptr<Record> run(SliceTaker& taker, const clock::Clock& clock, const Settings& settings) {
  const WarmedUp warmed_up = warm_up(taker, clock, settings);
  const std::size_t places = capacity_for(settings, warmed_up);
  auto record = std::make_unique<Record>(places, groups_for(settings, warmed_up, places),
                                         taker.has_completion(), settings.stop.target_half_width > 0.0);
  record->warm_up = warmed_up.done;
  record->calls_per_sample = warmed_up.calls_per_sample;
  if (warmed_up.why != Interruption::none) {
    record->stopped_by = reason_of(warmed_up.why);
    return record;
  }
  const std::string source_before = clock::kernel_clock_source();
  const std::int64_t stolen_before_ns = stolen_ns();
  const clock::Anchor from = clock::take_anchor(clock.source());
  Run(taker, clock, settings, *record).take_all_samples();
  record->clock_check = clock::cross_check(clock.calibration(), from, clock::take_anchor(clock.source()));
  record->clock_source_changed = clock::kernel_clock_source() != source_before;
  if (stolen_before_ns >= 0) record->stolen_ns = stolen_ns() - stolen_before_ns;
  to_nanoseconds(*record, clock);
  return record;
}

}  // namespace fairlap::loop
