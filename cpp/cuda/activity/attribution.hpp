#pragma once

#include <cstddef>
#include <cstdint>
#include <limits>
#include <map>
#include <span>
#include <string>
#include <vector>

namespace fairlap::cuda {

enum class ActivityKind : std::uint8_t { kernel, copy, fill };

// One thing that the device did, from its records.
struct Activity {
  std::uint64_t start_ns = 0;
  std::uint64_t end_ns = 0;
  const std::string* name = nullptr;  // kernels only; lives as long as the process
  std::uint32_t stream = 0;           // CUPTI's number, not a handle
  ActivityKind kind = ActivityKind::kernel;
  std::uint8_t copy_kind = 0;  // CUPTI's, of copies
};

// From before a sample's call until the context was idle after it, on the clock of the records.
struct Window {
  std::uint64_t begin_ns = 0;
  std::uint64_t end_ns = 0;
};

// Records that are missing from the work that ran between two times. Where nothing bounds them, the times are
// the widest there are.
struct Loss {
  std::uint64_t after_ns = 0;
  std::uint64_t before_ns = std::numeric_limits<std::uint64_t>::max();
  std::size_t records = 1;
};

bool is_any_lost_in(const Window& window, std::span<const Loss> losses);

// What the records show about one sample.
struct TracedSample {
  double kernel_sum_ns = 0.0;
  double copy_sum_ns = 0.0;
  double busy_ns = 0.0;  // overlapping activities count once
  double gap_ns = 0.0;
  std::size_t kernels = 0;
  std::size_t copies = 0;  // and fills
};

struct Tally {
  std::size_t count = 0;
  double total_ns = 0.0;
};

// What the records show about a run.
struct TraceSummary {
  std::map<std::string, Tally> kernels;    // by name
  std::map<std::uint32_t, Tally> streams;  // by CUPTI's number, all kinds of activity
  std::size_t between_samples = 0;         // kernels and copies that belong to no sample
  std::vector<Activity> last_sample;       // in order of their start, at most kLastSampleAtMost

  static constexpr std::size_t kLastSampleAtMost = 10000;
};

// Gives every activity to the sample whose window it overlaps most, for the clocks of host and device may
// differ by a little at the edges. Windows are in order and do not overlap. Fills between samples are not
// counted as strays: they are the flushing of the cache.
std::vector<TracedSample> attribute(std::vector<Activity>& activities, std::span<const Window> windows,
                                    TraceSummary& summary);

}  // namespace fairlap::cuda
