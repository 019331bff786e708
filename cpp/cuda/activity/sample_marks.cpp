#include "cuda/activity/sample_marks.hpp"

#include <algorithm>

#include "cuda/driver/current_context.hpp"
#include "cuda/driver/device_code.hpp"

namespace fairlap::cuda {

SampleMarks::SampleMarks(const BorrowedContext& context, const Cupti& cupti, const Kernels& kernels)
    : driver_(context.driver()), context_(context.handle()), kernels_(kernels), stream_(context) {
  cupti.check("cuptiGetStreamIdEx", cupti.cuptiGetStreamIdEx(context_, stream_.handle(), 0, &stream_id_));
}

void SampleMarks::set() const {
  const CurrentContext current(driver_, context_);
  kernels_.launch_empty(stream_.handle());
  driver_.cuStreamSynchronize(stream_.handle());
}

void SampleMarks::place(std::vector<Activity>& activities, std::span<Window> windows) const {
  const auto is_mark = [this](const Activity& activity) {
    return activity.kind == ActivityKind::kernel && activity.stream == stream_id_ &&
           activity.name != nullptr && *activity.name == kEmptyKernel;
  };
  std::vector<Window> marks;
  for (const Activity& activity : activities) {
    if (is_mark(activity)) marks.push_back({.begin_ns = activity.start_ns, .end_ns = activity.end_ns});
  }
  std::erase_if(activities, is_mark);
  // A call that raised leaves one mark more, behind all others.
  if (marks.size() / 2 != windows.size()) return;
  std::sort(marks.begin(), marks.end(),
            [](const Window& a, const Window& b) { return a.begin_ns < b.begin_ns; });
  for (std::size_t sample = 0; sample < windows.size(); ++sample)
    windows[sample] = {.begin_ns = marks[2 * sample].end_ns, .end_ns = marks[2 * sample + 1].begin_ns};
}

}  // namespace fairlap::cuda
