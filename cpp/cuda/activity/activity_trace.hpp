#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

#include "cuda/activity/activity_store.hpp"
#include "cuda/stream/borrowed_stream.hpp"

namespace fairlap::cuda {

// Activity records of one context, for as long as this lives. Being CUPTI's subscriber keeps others from
// taking the records away meanwhile, and detects when another profiler was first: then it throws
// Unavailable.
class ActivityTrace {
 public:
  ActivityTrace(const Cupti& cupti, const BorrowedStream& stream);
  ~ActivityTrace();

  ActivityTrace(const ActivityTrace&) = delete;  // There is one subscriber in a process.
  ActivityTrace& operator=(const ActivityTrace&) = delete;

  // Now, on the clock of the records.
  [[nodiscard]] std::uint64_t now_ns() const;

  // The records since the last time, and how many are missing. The context must be idle.
  std::vector<Activity> take(std::size_t& lost);

  // CUPTI's number for the stream that was handed over; empty when only a context was.
  [[nodiscard]] std::optional<std::uint32_t> stream_id() const noexcept { return stream_id_; }

 private:
  void enable();
  void stop() noexcept;

  const Cupti& cupti_;
  CUpti_SubscriberHandle subscriber_ = nullptr;
  std::size_t enabled_ = 0;
  std::optional<std::uint32_t> stream_id_;
};

}  // namespace fairlap::cuda
