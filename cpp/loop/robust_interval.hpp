#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

namespace fairlap::loop {

// A median and its interval, both in the unit of the samples. `coverage` is what the interval
// really covers, at least 0.95; with fewer than six values no such interval exists and it is 0.
struct RobustInterval {
  double median = 0.0;
  double low = 0.0;
  double high = 0.0;
  double coverage = 0.0;

  [[nodiscard]] bool exists() const noexcept { return coverage > 0.0; }
};

// Neighbouring samples resemble each other, so an interval that takes them for independent is too
// narrow. From 40 samples on, the run is cut into 20 batches in the order of time, and the sign
// interval (Thompson 1936) is taken over the batches' medians; it assumes no distribution. It describes
// this one process only. `scratch` holds one batch; use batch_scratch_size(). Samples that are NaN
// are invalid and left out.
RobustInterval interval_of_median(std::span<const double> samples_ns, std::span<double> scratch);

// The same for raw ticks, while the loop runs. The median is the median of the batches.
RobustInterval interval_of_median(std::span<const std::uint64_t> samples_ticks, std::span<double> scratch);

std::size_t batch_scratch_size(std::size_t samples) noexcept;

// How many of the smallest (and largest) of n values the 95 % sign interval leaves out, and what it covers.
struct SignRanks {
  std::size_t left_out = 0;
  double coverage = 0.0;
};
SignRanks sign_ranks(std::size_t n) noexcept;

// The q-quantile by linear interpolation between order statistics; sorts nothing but `values` partly.
double quantile_in_place(std::span<double> values, double q) noexcept;

}  // namespace fairlap::loop
