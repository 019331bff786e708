#pragma once

#include <optional>

#include "cuda/sampling/device_steps.hpp"
#include "cuda/stream/stream_run.hpp"

namespace fairlap::cuda {

// Everything a run needs in the borrowed context, made before the first call and destroyed after the last:
// gate, flush, records, guards, and what the method's floor is here. Throws when the request cannot be met.
class StreamMeans {
 public:
  StreamMeans(const BorrowedStream& stream, const StreamSettings& settings, const clock::Clock& clock,
              bool with_completion, StreamRecord& record);

  StreamMeans(const StreamMeans&) = delete;  // The steps of the run point into it.
  StreamMeans& operator=(const StreamMeans&) = delete;

  [[nodiscard]] DeviceSteps::Means for_steps() noexcept;

  // From now on the device's records are taken, where the method is of them. Not before the first calls: they
  // may start a profiler of the framework's, which must not find us holding CUPTI.
  void begin_records(StreamRecord& record);

  [[nodiscard]] bool has_gate() const noexcept { return gate_.has_value(); }
  [[nodiscard]] const Guard& guard() const noexcept { return guard_; }

  // A guard that waits for the device after each sample. It needs no gate to be true.
  [[nodiscard]] const Guard& waiting_guard() const noexcept { return waiting_guard_; }

  // The guard of every sample that follows is the one that waits: an event at the return of a call is too
  // early for work that outlives it.
  void wait_after_each_sample() noexcept { guard_ = waiting_guard_; }

  // What holds the stream, if anything does.
  [[nodiscard]] Gate* gate() noexcept { return gate_ ? &*gate_ : nullptr; }

  // Leaves to the device what it may still use, because it does not answer.
  void abandon() noexcept;

 private:
  void wait_for_earlier_work() const;
  void load_kernels(StreamRecord& record);
  void take_gate(const Kernels* kernels, StreamRecord& record);
  void take_guards(const ContextEvents& events, bool with_completion);
  void try_records(StreamRecord& record);

  const BorrowedStream& stream_;
  const StreamSettings& settings_;
  std::optional<Kernels> kernels_;
  std::optional<Gate> gate_;
  std::optional<CacheFlush> flush_;
  std::optional<ActivityTrace> trace_;
  std::optional<SampleMarks> marks_;
  bool whole_context_;
  bool context_events_ = false;
  Guard waiting_guard_;
  Guard guard_;
};

}  // namespace fairlap::cuda
