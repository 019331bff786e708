#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "cuda/activity/attribution.hpp"
#include "cuda/activity/cupti.hpp"
#include "cuda/driver/kernels.hpp"

namespace fairlap::cuda {

// Marks where samples begin and end, among the device's own records: an empty kernel on a stream of ours,
// before and after each. CUPTI brings the device's clock to the host's, and leaves the two some microseconds
// apart: on an H100, 38 % of samples of 30 us had no record within the times that the host took around them.
class SampleMarks {
 public:
  SampleMarks(const BorrowedContext& context, const Cupti& cupti, const Kernels& kernels);

  // Returns when the mark is set. The context must be idle, so that nothing runs on both sides of it.
  void set() const;

  // Takes the marks out of the activities, and moves the windows to where they are. Where a mark is missing,
  // all windows stay as the host took them.
  void place(std::vector<Activity>& activities, std::span<Window> windows) const;

  void abandon() noexcept { stream_.abandon(); }

 private:
  const Driver& driver_;
  CUcontext context_;
  const Kernels& kernels_;
  PrivateStream stream_;
  std::uint32_t stream_id_ = 0;
};

}  // namespace fairlap::cuda
