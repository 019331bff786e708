#pragma once

#include <functional>

#include "cuda/stream/stream_means.hpp"

namespace fairlap::cuda {

// Samples that are not kept: the first calls, the search for a steady state, the number of calls per sample.
// What it learns goes into the shape of the samples that are.
class StreamWarmUp {
 public:
  StreamWarmUp(const StreamSettings& settings, const BorrowedStream& stream, const clock::Clock& clock,
               StreamMeans& means, DeviceSteps& steps, StreamRecord& record)
      : settings_(settings), stream_(stream), clock_(clock), means_(means), steps_(steps), record_(record) {}

  // The first calls run without a gate and are waited for one by one: a gate would let work on other streams
  // finish before the sample begins, where no guard can see it. Throws where the work comes onto the stream
  // only after its call has returned.
  SampleEnd first_calls(loop::Work& work, SampleShape& shape);

  // The rest of the warm-up, as given or until the median is steady.
  SampleEnd settle(loop::Work& work, SampleShape& shape);

  // As many calls per sample as the event quantum asks for, or fewer where the gate times out.
  SampleEnd choose_calls(loop::Work& work, SampleShape& shape);

  // From one sample to the next, in the last samples taken; 0 when none were.
  [[nodiscard]] double sample_period_ns() const noexcept { return sample_period_ns_; }

 private:
  struct Batch {
    SampleEnd end = SampleEnd::taken;
    double median_ns = 0.0;  // of the whole sample, not of one call
    std::size_t valid = 0;
    std::size_t gate_timeouts = 0;
    std::size_t hidden = 0;
  };

  SampleEnd refuse_late_work(loop::Work& work, SampleShape& shape);
  SampleEnd look_for_hidden_work(loop::Work& work, std::uint64_t samples, const SampleShape& waited);
  Batch take(loop::Work& work, std::size_t samples, const SampleShape& shape, const Guard& guard);
  void give_up_gate(SampleShape& shape, const std::string& because);
  void give_up_gate_if_timed_out(const Batch& batch, SampleShape& shape);
  [[nodiscard]] double quantum_ns() const noexcept;
  [[nodiscard]] bool finds_warm_up() const noexcept { return settings_.warm_up == loop::WarmUpKind::found; }

  const StreamSettings& settings_;
  const BorrowedStream& stream_;
  const clock::Clock& clock_;
  StreamMeans& means_;
  DeviceSteps& steps_;
  StreamRecord& record_;
  double sample_period_ns_ = 0.0;
  bool hides_work_ = false;
};

}  // namespace fairlap::cuda
