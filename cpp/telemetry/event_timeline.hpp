#pragma once

#include <cstdint>
#include <deque>
#include <functional>
#include <vector>

#include "cuda/owned.hpp"
#include "telemetry/alignment.hpp"

namespace fairlap::telemetry {

// Where a device's events lie on the sampler's clock. An anchor is an event of our own on an idle stream,
// recorded between two looks at the clock; it waits for nothing but itself. Times between events come from
// the driver as floats of milliseconds, which are coarse for long spans: so each anchor is measured from the
// one before, and an event from the anchor nearest to it.
class EventTimeline {
 public:
  using Now = std::function<std::int64_t()>;

  // Takes the first anchor. `now` is the sampler's clock.
  EventTimeline(const cuda::BorrowedContext& context, Now now);

  // Compares the clocks again: the narrowest of a few tries.
  void anchor();
  // Only when the last anchor is older than this; says whether it was.
  bool anchor_if_older(std::int64_t age_ns);

  // Of an event that is done, recorded in the same context with timing. Throws cuda::CudaError where not.
  [[nodiscard]] AlignedTime time_of(cuda::CUevent event) const;
  [[nodiscard]] ClockDrift drift() const { return drift_of(anchors_); }
  [[nodiscard]] std::size_t anchors() const noexcept { return anchors_.size(); }

 private:
  static constexpr std::size_t kMostAnchors = 4096;  // an hour of one each second; then the oldest go

  [[nodiscard]] ClockAnchor try_once(cuda::CUevent event) const;

  const cuda::BorrowedContext& context_;
  Now now_;
  cuda::PrivateStream stream_;
  std::vector<ClockAnchor> anchors_;
  std::deque<cuda::Event> events_;  // of each anchor
};

}  // namespace fairlap::telemetry
