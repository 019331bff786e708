#include "cuda/sampling/sequence.hpp"

#include <algorithm>

#include "loop/entered.hpp"

namespace fairlap::cuda {
namespace {

using loop::Entered;

class ClosedGate {
 public:
  ClosedGate(SampleSteps& steps, std::size_t slot, bool wanted)
      : steps_(steps), slot_(slot), wanted_(wanted) {
    if (wanted_) steps_.close_gate();
  }
  ~ClosedGate() {
    if (wanted_) steps_.open_gate(slot_);
  }
  ClosedGate(const ClosedGate&) = delete;
  ClosedGate& operator=(const ClosedGate&) = delete;

 private:
  SampleSteps& steps_;
  std::size_t slot_;
  bool wanted_;
};

// Wakes the host when the framework reports that the work is complete, and gives back what the call returned.
bool complete_and_drop(loop::Work& work) noexcept {
  const bool waited = !work.has_completion() || work.wait();
  return work.drop() && waited;
}

}  // namespace

Sequence::Sequence(SampleSteps& steps, loop::Work& work, const clock::Clock& clock, const SampleShape& shape)
    : steps_(steps), work_(work), clock_(clock), shape_(shape) {
  shape_.slots = std::clamp<std::size_t>(shape.slots, 1, kSlotsAtMost);
}

bool Sequence::call(std::size_t slot) {
  bool fine = true;
  HostStamps& stamps = stamps_[slot];
  stamps.started = clock_.start();
  for (std::uint64_t calls = shape_.calls_per_sample; calls != 0 && fine; --calls) fine = work_.call();
  stamps.issued = clock_.finish();
  return fine;
}

SampleEnd Sequence::take_one() {
  if (const SampleEnd end = make_room(); end != SampleEnd::taken) return end;
  const std::size_t slot = enqueued_ % shape_.slots;
  SampleEnd end = SampleEnd::taken;
  switch (shape_.method) {
    case Method::device_span:
      end = enqueue_span(slot);
      break;
    case Method::context_span:
      end = enqueue_context_span(slot);
      break;
    case Method::kernel_sum:
      end = trace(slot);
      break;
    case Method::host_issue:
      end = issue(slot);
      break;
  }
  if (!is_complete(end)) return end;
  ++enqueued_;
  const bool must_wait = shape_.method != Method::device_span || shape_.guard == GuardKind::context_sync;
  if (must_wait) {
    if (const SampleEnd stored = store_oldest(); stored != SampleEnd::taken) return stored;
  }
  return end;
}

// A guard that waits must begin when the stop event is noticed. A completion returns only when the framework
// has been woken, tens of microseconds later, and that would look like work.
bool Sequence::looks_before_completion() const noexcept {
  return shape_.method == Method::device_span && shape_.guard == GuardKind::context_sync;
}

SampleEnd Sequence::make_room() {
  while (in_flight() > 0 && steps_.is_finished(stored_ % shape_.slots)) {
    if (const SampleEnd end = store_oldest(); end != SampleEnd::taken) return end;
  }
  return in_flight() < shape_.slots ? SampleEnd::taken : store_oldest();
}

SampleEnd Sequence::store_oldest() {
  const std::size_t slot = stored_ % shape_.slots;
  const bool has_events = shape_.method == Method::device_span || shape_.method == Method::context_span;
  if (has_events && !looks_before_completion()) {
    if (const SampleEnd end = steps_.wait_for(slot); end != SampleEnd::taken) return end;
    if (shape_.guard != GuardKind::none) steps_.look_for_hidden_work(slot);
  }
  steps_.store(slot, stamps_[slot]);
  ++stored_;
  return SampleEnd::taken;
}

SampleEnd Sequence::drain() {
  while (in_flight() > 0) {
    if (const SampleEnd end = store_oldest(); end != SampleEnd::taken) return end;
  }
  return SampleEnd::taken;
}

// A reset takes effect when its call returns and not in the order of a stream, so nothing may be in flight
// that could make lines persist again.
SampleEnd Sequence::make_cold() {
  if (shape_.resets_persisting) {
    if (const SampleEnd end = drain(); end != SampleEnd::taken) return end;
    steps_.reset_persisting_lines();
  }
  if (shape_.flush) steps_.flush_cache();
  return SampleEnd::taken;
}

SampleEnd Sequence::enqueue_span(std::size_t slot) {
  if (const SampleEnd end = make_cold(); end != SampleEnd::taken) return end;
  bool fine = true;
  bool stop = false;
  {
    const ClosedGate gate(steps_, slot, shape_.gate);
    Entered entered(work_);
    steps_.record_start(slot);
    fine = call(slot);
    steps_.record_stop(slot);
    stop = work_.stop_requested();
    // What the call returned is given back at once: freeing device memory is ordered by the stream.
    if (!work_.has_completion()) fine = work_.drop() && fine;
    stop = entered.leave() || stop;
    if (shape_.guard == GuardKind::context_event) steps_.record_guard(slot);
  }
  if (fine && looks_before_completion()) {
    if (const SampleEnd end = steps_.wait_for(slot); end != SampleEnd::taken) return end;
    steps_.look_for_hidden_work(slot);
  }
  // A completion waits for the device, so it comes after the gate is open.
  if (work_.has_completion()) {
    Entered entered(work_);
    fine = complete_and_drop(work_) && fine;
    stop = entered.leave() || stop;
  }
  if (!fine) return SampleEnd::raised;
  return stop ? SampleEnd::stop_requested : SampleEnd::taken;
}

SampleEnd Sequence::enqueue_context_span(std::size_t slot) {
  if (const SampleEnd end = make_cold(); end != SampleEnd::taken) return end;
  // A span over all streams begins when the last of them is done, so they must all be held at the same point.
  if (const SampleEnd end = steps_.wait_until_idle(); end != SampleEnd::taken) return end;
  Entered entered(work_);
  steps_.record_start(slot);
  // A framework that hides its streams may also enqueue after its call has returned; its completion shows
  // when it no longer does.
  const bool fine = call(slot) && (!work_.has_completion() || work_.wait());
  steps_.record_stop(slot);
  const bool dropped = work_.drop();
  bool stop = work_.stop_requested();
  stop = entered.leave() || stop;
  if (!fine || !dropped) return SampleEnd::raised;
  return stop ? SampleEnd::stop_requested : SampleEnd::taken;
}

SampleEnd Sequence::trace(std::size_t slot) {
  if (const SampleEnd end = make_cold(); end != SampleEnd::taken) return end;
  if (const SampleEnd end = steps_.wait_until_idle(); end != SampleEnd::taken) return end;
  steps_.begin_records(slot);
  const SampleEnd issued = issue(slot);
  if (!is_complete(issued)) return issued;
  steps_.end_records(slot);
  return issued;
}

SampleEnd Sequence::issue(std::size_t slot) {
  bool fine = true;
  bool stop = false;
  {
    Entered entered(work_);
    fine = call(slot);
    fine = complete_and_drop(work_) && fine;
    stop = work_.stop_requested();
    stop = entered.leave() || stop;
  }
  if (!fine) return SampleEnd::raised;
  const SampleEnd idle = steps_.wait_until_idle();
  if (idle != SampleEnd::taken) return idle;
  return stop ? SampleEnd::stop_requested : SampleEnd::taken;
}

}  // namespace fairlap::cuda
