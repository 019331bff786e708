#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

#include "cuda/activity/activity_store.hpp"
#include "cuda/stream/borrowed_stream.hpp"

namespace fairlap::cuda {

// Activity records of one context, from start() to stop(). Being CUPTI's subscriber meanwhile keeps others
// from taking the records away, and detects when another profiler was first: then start() throws Unavailable.
// It is held no longer than needed, because a profiler that begins while we hold it may never work in this
// process: PyTorch's asks once and remembers the refusal.
class ActivityTrace {
 public:
  struct Taken {
    std::vector<Activity> activities;
    std::vector<Loss> losses;
  };

  ActivityTrace(const Cupti& cupti, const BorrowedStream& stream) : cupti_(cupti), stream_(stream) {}
  ~ActivityTrace() { stop(); }

  void start();
  void stop() noexcept;

  ActivityTrace(const ActivityTrace&) = delete;  // There is one subscriber in a process.
  ActivityTrace& operator=(const ActivityTrace&) = delete;

  // Now, on the clock of the records.
  [[nodiscard]] std::uint64_t now_ns() const;

  // The records since the last time, and what is missing of them. The context must be idle.
  Taken take();

  // CUPTI's number for the stream that was handed over; empty when only a context was.
  [[nodiscard]] std::optional<std::uint32_t> stream_id() const noexcept { return stream_id_; }

 private:
  void count_in_nanoseconds() const;
  void enable();

  const Cupti& cupti_;
  const BorrowedStream& stream_;
  CUpti_SubscriberHandle subscriber_ = nullptr;
  std::size_t enabled_ = 0;
  std::optional<std::uint32_t> stream_id_;
};

}  // namespace fairlap::cuda
