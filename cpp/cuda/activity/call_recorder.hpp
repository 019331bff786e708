#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "cuda/activity/activity_trace.hpp"

namespace fairlap::cuda {

// What the device did during one call, on CUPTI's clock.
struct RecordedCall {
  std::uint64_t begin_ns = 0;
  std::uint64_t end_ns = 0;
  std::vector<Activity> activities;  // in order of their start
  bool is_complete = true;           // none of its records was lost
};

// Records of whole calls in one context, on every stream of it. It holds CUPTI as long as it lives. The
// records are fetched after each call, so that they belong to it whatever the clocks of host and device are
// apart by, and so that CUPTI's buffers are not outgrown.
class CallRecorder {
 public:
  CallRecorder(const Driver& driver, const Cupti& cupti, int device);

  CallRecorder(const CallRecorder&) = delete;  // There is one subscriber in a process.
  CallRecorder& operator=(const CallRecorder&) = delete;

  void begin();
  // When the call has returned; one that does not wait for its work is waited for, outside of its time.
  RecordedCall end();

 private:
  void settle() const;

  BorrowedStream stream_;
  ActivityTrace trace_;
  std::uint64_t begin_ns_ = 0;
};

// A kernel's name as its source has it, and what kind of copy it is; "" for what has neither.
std::string readable_name(const Activity& activity);

}  // namespace fairlap::cuda
