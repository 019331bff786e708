#pragma once

#include <cstddef>
#include <cstdint>

#include "clock/clock.hpp"
#include "loop/work.hpp"

namespace fairlap::cuda {

// How the device's time is taken.
enum class Method {
  device_span,   // event to event on the work's own stream
  context_span,  // event to event over every stream of the context
  kernel_sum,    // the device's own records of what ran
  host_issue,    // not at all: only how long the host takes to hand the work over
};

// How work that outlives the stop event is found.
enum class GuardKind {
  none,
  context_event,  // an event of the whole context after the stop event; costs no waiting
  context_sync,   // waiting for the whole context after the stop event
};

// What one sample consists of. Fixed while samples are taken.
struct SampleShape {
  Method method = Method::device_span;
  bool flush = false;
  bool gate = false;
  GuardKind guard = GuardKind::none;
  std::uint64_t calls_per_sample = 1;
  std::size_t slots = 1;           // samples in flight at most
  bool resets_persisting = false;  // lines of the cache that the work asked to persist, before each sample
};

// taken: complete. stop_requested: complete, and the user wants no more. The others leave the sample
// incomplete: the work raised, Ctrl-C came while waiting for the device, or the device did not answer in
// time.
enum class SampleEnd { taken, stop_requested, raised, interrupted, out_of_patience };

constexpr bool is_complete(SampleEnd end) noexcept {
  return end == SampleEnd::taken || end == SampleEnd::stop_requested;
}

struct HostStamps {
  std::uint64_t started = 0;
  std::uint64_t issued = 0;
};

// Everything that a sample needs done, one verb each. The real ones drive a device; a test's write down their
// order. Any may throw; open_gate() may not, so that no error leaves a stream held.
class SampleSteps {
 public:
  virtual ~SampleSteps() = default;

  virtual void reset_persisting_lines() = 0;
  virtual void flush_cache() = 0;
  virtual void close_gate() = 0;
  virtual void open_gate(std::size_t slot) noexcept = 0;
  virtual void record_start(std::size_t slot) = 0;
  virtual void record_stop(std::size_t slot) = 0;
  virtual void record_guard(std::size_t slot) = 0;
  virtual void begin_records(std::size_t slot) = 0;
  virtual void end_records(std::size_t slot) = 0;

  // Both give up on Ctrl-C (interrupted) and when patience ends.
  virtual SampleEnd wait_for(std::size_t slot) = 0;
  virtual SampleEnd wait_until_idle() = 0;

  virtual bool is_finished(std::size_t slot) = 0;
  virtual void look_for_hidden_work(std::size_t slot) = 0;
  virtual void store(std::size_t slot, const HostStamps& stamps) = 0;
};

// The order of things, and nothing else. Samples go round a ring of slots: while the device works on one, the
// host enqueues the next, and a finished one is stored when its slot is wanted again.
class Sequence {
 public:
  Sequence(SampleSteps& steps, loop::Work& work, const clock::Clock& clock, const SampleShape& shape);

  SampleEnd take_one();

  // Waits for what is in flight and stores it.
  SampleEnd drain();

  [[nodiscard]] std::size_t in_flight() const noexcept { return enqueued_ - stored_; }

  static constexpr std::size_t kSlotsAtMost = 64;

 private:
  SampleEnd make_room();
  SampleEnd make_cold();
  SampleEnd store_oldest();
  SampleEnd enqueue_span(std::size_t slot);
  SampleEnd enqueue_context_span(std::size_t slot);
  SampleEnd trace(std::size_t slot);
  SampleEnd issue(std::size_t slot);
  bool call(std::size_t slot);
  [[nodiscard]] bool looks_before_completion() const noexcept;

  SampleSteps& steps_;
  loop::Work& work_;
  const clock::Clock& clock_;
  SampleShape shape_;
  HostStamps stamps_[kSlotsAtMost];
  std::size_t enqueued_ = 0;
  std::size_t stored_ = 0;
};

}  // namespace fairlap::cuda
