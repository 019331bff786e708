#include "telemetry/event_timeline.hpp"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <limits>

#include "cuda/cuda_error.hpp"
#include "cuda/current_context.hpp"
#include "cuda/spans.hpp"

namespace fairlap::telemetry {
namespace {

constexpr int kTries = 5;
constexpr auto kPatience = std::chrono::seconds(5);

}  // namespace

EventTimeline::EventTimeline(const cuda::BorrowedContext& context, Now now)
    : context_(context), now_(std::move(now)), stream_(context) {
  anchor();
}

ClockAnchor EventTimeline::try_once(cuda::CUevent event) const {
  const cuda::Driver& driver = context_.driver();
  const auto give_up = std::chrono::steady_clock::now() + kPatience;
  ClockAnchor anchor;
  anchor.low_ns = now_();
  driver.cuEventRecord(event, stream_.handle());
  cuda::CUresult state = driver.cuEventQuery.code_of(event);
  while (state == cuda::CUDA_ERROR_NOT_READY && std::chrono::steady_clock::now() < give_up) {
    state = driver.cuEventQuery.code_of(event);
  }
  if (state != cuda::CUDA_SUCCESS) driver.cuEventQuery.fail(state);
  anchor.high_ns = now_();
  return anchor;
}

void EventTimeline::anchor() {
  const cuda::Driver& driver = context_.driver();
  const cuda::CurrentContext current(driver, context_.handle());
  std::deque<cuda::Event> tried;
  std::vector<ClockAnchor> found;
  for (int i = 0; i < kTries; ++i) {
    tried.emplace_back(context_);
    found.push_back(try_once(tried.back().handle()));
  }
  const auto narrowest = std::min_element(found.begin(), found.end(), [](const auto& a, const auto& b) {
    return a.half_width_ns() < b.half_width_ns();
  });
  const auto which = static_cast<std::size_t>(narrowest - found.begin());
  if (!anchors_.empty()) {
    narrowest->device_ns =
        anchors_.back().device_ns + cuda::span_ns(driver, events_.back().handle(), tried[which].handle());
  }
  if (anchors_.size() == kMostAnchors) {
    anchors_.erase(anchors_.begin());
    events_.pop_front();
  }
  events_.push_back(std::move(tried[which]));
  anchors_.push_back(*narrowest);
}

bool EventTimeline::anchor_if_older(std::int64_t age_ns) {
  if (now_() - anchors_.back().high_ns < age_ns) return false;
  anchor();
  return true;
}

AlignedTime EventTimeline::time_of(cuda::CUevent event) const {
  const cuda::Driver& driver = context_.driver();
  const cuda::CurrentContext current(driver, context_.handle());
  // The first span may be long and coarse; it finds the anchor from which the span is short.
  const double coarse_ns = anchors_.back().device_ns + cuda::span_ns(driver, events_.back().handle(), event);
  const auto nearest =
      std::min_element(anchors_.begin(), anchors_.end(), [&](const ClockAnchor& a, const ClockAnchor& b) {
        return std::abs(a.device_ns - coarse_ns) < std::abs(b.device_ns - coarse_ns);
      });
  const auto which = static_cast<std::size_t>(nearest - anchors_.begin());
  const double span_ns = cuda::span_ns(driver, events_[which].handle(), event);
  AlignedTime time = aligned(anchors_, nearest->device_ns + span_ns);
  time.uncertainty_ns += std::abs(span_ns) * static_cast<double>(std::numeric_limits<float>::epsilon());
  return time;
}

}  // namespace fairlap::telemetry
