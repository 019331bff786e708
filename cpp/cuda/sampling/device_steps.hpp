#pragma once

#include <chrono>
#include <cstddef>
#include <optional>
#include <vector>

#include "clock/clock.hpp"
#include "cuda/activity/activity_trace.hpp"
#include "cuda/activity/sample_marks.hpp"
#include "cuda/gate/gate.hpp"
#include "cuda/gate/guard.hpp"
#include "cuda/sampling/cache_flush.hpp"
#include "cuda/sampling/sample_table.hpp"
#include "cuda/sampling/sequence.hpp"

namespace fairlap::cuda {

// The verbs of a sample, done on a device. Every event is made beforehand; a context is made current only
// around our own calls, never around the work's.
class DeviceSteps final : public SampleSteps {
 public:
  // What the steps work with; the pointers may be null where a sample's shape does not ask for them.
  struct Means {
    Gate* gate = nullptr;
    const CacheFlush* flush = nullptr;
    ActivityTrace* trace = nullptr;
    const SampleMarks* marks = nullptr;  // without them, records go to samples by the host's times
    bool context_events = false;  // they time correctly here, so they may also show when the context is idle
    bool whole_context = true;    // it may be waited for; that ends every capture in it
    std::chrono::nanoseconds patience{};
  };

  DeviceSteps(const BorrowedStream& stream, loop::Work& work, const clock::Clock& clock, const Means& means,
              std::size_t slots);

  // Where the samples that follow go, how many calls each is of, and how hidden work shows.
  void begin(SampleTable& table, const SampleShape& shape, const Guard& guard);

  // Reads the activity records of the rows since the last time. The context must be idle.
  void attribute_records();

  [[nodiscard]] const TraceSummary& trace_summary() const noexcept { return trace_summary_; }
  [[nodiscard]] std::size_t lost_records() const noexcept { return lost_records_; }
  [[nodiscard]] double longest_tail_ns() const noexcept { return longest_tail_ns_; }

  void reset_persisting_lines() override;
  void flush_cache() override;
  void close_gate() override;
  void open_gate(std::size_t slot) noexcept override;
  void record_start(std::size_t slot) override;
  void record_stop(std::size_t slot) override;
  void record_guard(std::size_t slot) override;
  void begin_records(std::size_t slot) override;
  void end_records(std::size_t slot) override;
  SampleEnd wait_for(std::size_t slot) override;
  SampleEnd wait_until_idle() override;
  bool is_finished(std::size_t slot) override;
  void look_for_hidden_work(std::size_t slot) override;
  void store(std::size_t slot, const HostStamps& stamps) override;

 private:
  using SteadyClock = std::chrono::steady_clock;

  struct Slot {
    explicit Slot(const BorrowedContext& context) : start(context), stop(context), guard(context) {}
    Event start;
    Event stop;
    Event guard;
    SteadyClock::time_point stopping;  // when the stop event was about to be recorded
    double host_delay_ns = 0.0;        // by which the host alone may have put the guard event off
    bool held = true;                  // the gate held until it was opened
    bool hidden = false;
    Window window;
  };

  SampleEnd wait_for_event(CUevent event, double* noticed_within_ns);
  bool asked_to_stop();
  [[nodiscard]] bool by_context() const noexcept { return shape_.method == Method::context_span; }
  [[nodiscard]] CUevent last_event_of(const Slot& slot) const noexcept;
  [[nodiscard]] double span_between(const Event& start, const Event& stop) const;
  [[nodiscard]] bool has_happened(CUevent event) const;

  const BorrowedStream& stream_;
  const Driver& driver_;
  loop::Work& work_;
  const clock::Clock& clock_;
  Means means_;
  std::vector<Slot> slots_;
  Event idle_;

  SampleTable* table_ = nullptr;
  SampleShape shape_;
  Guard guard_;
  double longest_tail_ns_ = 0.0;

  std::vector<Window> windows_;  // of the rows whose records have not been read yet
  TraceSummary trace_summary_;
  std::size_t lost_records_ = 0;
};

}  // namespace fairlap::cuda
