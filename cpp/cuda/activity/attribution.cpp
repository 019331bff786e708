#include "cuda/activity/attribution.hpp"

#include <algorithm>

namespace fairlap::cuda {
namespace {

constexpr std::size_t kNone = static_cast<std::size_t>(-1);

std::uint64_t overlap_ns(const Activity& activity, const Window& window) {
  const std::uint64_t begin = std::max(activity.start_ns, window.begin_ns);
  const std::uint64_t end = std::min(std::max(activity.end_ns, activity.start_ns + 1), window.end_ns);
  return end > begin ? end - begin : 0;
}

std::size_t window_of(const Activity& activity, std::span<const Window> windows) {
  const auto after =
      std::upper_bound(windows.begin(), windows.end(), activity.start_ns,
                       [](std::uint64_t start, const Window& window) { return start < window.begin_ns; });
  const auto next = static_cast<std::size_t>(after - windows.begin());
  std::size_t best = kNone;
  std::uint64_t most = 0;
  for (std::size_t candidate = next == 0 ? 0 : next - 1; candidate <= next && candidate < windows.size();
       ++candidate) {
    if (const std::uint64_t overlap = overlap_ns(activity, windows[candidate]); overlap > most) {
      most = overlap;
      best = candidate;
    }
  }
  return best;
}

// The stretch of busy time at the present end of one sample; activities come in order of their start.
struct Busy {
  std::uint64_t first_ns = 0;
  std::uint64_t last_ns = 0;
  bool any = false;

  void add(const Activity& activity, TracedSample& sample) {
    if (!any) first_ns = last_ns = activity.start_ns;
    any = true;
    const std::uint64_t begin = std::max(activity.start_ns, last_ns);
    if (activity.end_ns > begin) sample.busy_ns += static_cast<double>(activity.end_ns - begin);
    last_ns = std::max(last_ns, activity.end_ns);
    sample.gap_ns = std::max(0.0, static_cast<double>(last_ns - first_ns) - sample.busy_ns);
  }
};

void add(Tally& tally, double ns) {
  ++tally.count;
  tally.total_ns += ns;
}

}  // namespace

bool is_any_lost_in(const Window& window, std::span<const Loss> losses) {
  return std::any_of(losses.begin(), losses.end(), [&window](const Loss& loss) {
    return loss.after_ns < window.end_ns && loss.before_ns >= window.begin_ns;
  });
}

std::vector<TracedSample> attribute(std::vector<Activity>& activities, std::span<const Window> windows,
                                    TraceSummary& summary) {
  std::sort(activities.begin(), activities.end(),
            [](const Activity& a, const Activity& b) { return a.start_ns < b.start_ns; });
  std::vector<TracedSample> samples(windows.size());
  std::vector<Busy> busy(windows.size());
  if (!windows.empty()) summary.last_sample.clear();
  for (const Activity& activity : activities) {
    const std::size_t at = window_of(activity, windows);
    if (at == kNone) {
      if (activity.kind != ActivityKind::fill) ++summary.between_samples;
      continue;
    }
    const double length_ns = static_cast<double>(activity.end_ns - activity.start_ns);
    TracedSample& sample = samples[at];
    busy[at].add(activity, sample);
    add(summary.streams[activity.stream], length_ns);
    if (activity.kind == ActivityKind::kernel) {
      ++sample.kernels;
      sample.kernel_sum_ns += length_ns;
      if (activity.name != nullptr) add(summary.kernels[*activity.name], length_ns);
    } else {
      ++sample.copies;
      sample.copy_sum_ns += length_ns;
    }
    if (at + 1 == windows.size() && summary.last_sample.size() < TraceSummary::kLastSampleAtMost) {
      summary.last_sample.push_back(activity);
    }
  }
  return samples;
}

}  // namespace fairlap::cuda
