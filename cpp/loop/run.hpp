#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "clock/clock.hpp"
#include "loop/group_table.hpp"
#include "loop/measured_loop.hpp"
#include "loop/prefaulted_memory.hpp"
#include "loop/steadiness.hpp"
#include "loop/stop_rule.hpp"

namespace fairlap::loop {

struct Settings {
  StopRule stop;
  std::uint64_t calls_per_sample = 0;  // 0: as many as `floor_multiple` asks for
  double floor_multiple = 50.0;        // one sample lasts at least this many floors of the clock
  WarmUpKind warm_up = WarmUpKind::found;
  std::uint64_t warm_up_calls = 0;
  double warm_up_max_seconds = 2.0;
  // When to make a drawn call: shares of the run's time or samples, ascending. Drawn calls are no samples.
  std::vector<double> drawn_at;
};

struct WarmUpDone {
  WarmUpKind kind = WarmUpKind::none;
  bool settled = false;
  std::uint64_t calls = 0;
  double elapsed_ns = 0.0;
  double first_call_ns = 0.0;
};

// The result of one run. Python sees the arrays without a copy.
struct Record {
  Record(std::size_t places, std::size_t group_places, bool with_completion, bool with_target);

  [[nodiscard]] std::span<const double> wall_ns() const noexcept {
    return wall.as<const double>().first(taken);
  }
  [[nodiscard]] std::span<const double> host_issue_ns() const noexcept {
    return host_issue.as<const double>().first(has_completion ? taken : 0);
  }

  std::size_t capacity;
  bool has_completion;
  PrefaultedMemory wall;        // ticks while the run lasts, nanoseconds afterwards
  PrefaultedMemory host_issue;  // likewise
  PrefaultedMemory scratch;     // one batch, where the interval is looked at while the loop runs
  GroupTable groups;
  std::size_t taken = 0;
  std::size_t backward = 0;  // samples whose clock went backwards; they are NaN
  std::uint64_t calls_per_sample = 1;
  double correction_ns = 0.0;  // the clock's bias, subtracted from every sample before dividing by its calls
  double elapsed_ns = 0.0;
  std::int64_t stolen_ns = -1;  // by the hypervisor, over all cores; -1 where unknown
  WarmUpDone warm_up;
  StopReason stopped_by = StopReason::samples;
  clock::CrossCheck clock_check;
  bool clock_source_changed = false;  // the kernel gave up its clock source during the run
};

// One kind of work on one clock; the driver below is the same for all.
class SliceTaker {
 public:
  virtual ~SliceTaker() = default;
  virtual SliceEnd take(const Slice& slice) noexcept = 0;
  [[nodiscard]] virtual bool has_completion() const noexcept = 0;
  virtual bool begin_drawn(std::size_t number) noexcept = 0;
  virtual bool end_drawn(std::size_t number, double wall_ns) noexcept = 0;
};

template <class TimedWork>
class TakerFor final : public SliceTaker {
 public:
  TakerFor(TimedWork& work, clock::Source source) noexcept : work_(work), source_(source) {}

  SliceEnd take(const Slice& slice) noexcept override {
    return source_ == clock::Source::timestamp_counter ? take_by<clock::TimestampCounter>(slice)
                                                       : take_by<clock::MonotonicRaw>(slice);
  }
  [[nodiscard]] bool has_completion() const noexcept override { return work_.has_completion(); }
  bool begin_drawn(std::size_t number) noexcept override { return work_.begin_drawn(number); }
  bool end_drawn(std::size_t number, double wall_ns) noexcept override {
    return work_.end_drawn(number, wall_ns);
  }

 private:
  template <class Clock>
  SliceEnd take_by(const Slice& slice) noexcept {
    if (work_.has_preparation()) {
      return work_.has_completion() ? take_slice<Clock, true, true>(work_, slice)
                                    : take_slice<Clock, false, true>(work_, slice);
    }
    return work_.has_completion() ? take_slice<Clock, true, false>(work_, slice)
                                  : take_slice<Clock, false, false>(work_, slice);
  }

  TimedWork& work_;
  clock::Source source_;
};

// Turns every tick count into nanoseconds per call, in place: both are eight bytes, and a double begins to
// live where a tick count ended. Samples whose clock went backwards become NaN; their number is returned.
std::size_t ticks_to_ns(std::span<std::uint64_t> samples, double ns_per_tick, double correction_ns,
                        double calls);

// Warms up, chooses the calls per sample, takes samples until the stop rule is met, converts them
// to nanoseconds per call. Never throws once the first sample is taken: what was sampled is returned.
std::unique_ptr<Record> run(SliceTaker& taker, const clock::Clock& clock, const Settings& settings);

}  // namespace fairlap::loop
