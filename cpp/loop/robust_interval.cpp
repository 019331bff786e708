#include "loop/robust_interval.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>

namespace fairlap::loop {
namespace {

constexpr std::size_t kBatches = 20;
constexpr std::size_t kSamplesForBatches = 2 * kBatches;

template <class T>
std::size_t copy_valid(std::span<const T> from, std::span<double> to) noexcept {
  std::size_t copied = 0;
  for (const T sample : from) {
    const auto value = static_cast<double>(sample);
    if (!std::isnan(value)) to[copied++] = value;
  }
  return copied;
}

RobustInterval interval_over(std::span<double> values) noexcept {
  RobustInterval interval;
  if (values.empty()) {
    interval.median = interval.low = interval.high = std::numeric_limits<double>::quiet_NaN();
    return interval;
  }
  interval.median = quantile_in_place(values, 0.5);
  const SignRanks ranks = sign_ranks(values.size());
  interval.coverage = ranks.coverage;
  std::sort(values.begin(), values.end());
  interval.low = values[ranks.left_out];
  interval.high = values[values.size() - 1 - ranks.left_out];
  return interval;
}

template <class T>
RobustInterval interval_of(std::span<const T> samples, std::span<double> scratch) {
  if (samples.size() < kSamplesForBatches) {
    return interval_over(scratch.first(copy_valid(samples, scratch)));
  }
  std::array<double, kBatches> medians{};
  std::size_t filled = 0;
  for (std::size_t batch = 0; batch < kBatches; ++batch) {
    const std::size_t begin = samples.size() * batch / kBatches;
    const std::size_t end = samples.size() * (batch + 1) / kBatches;
    const std::size_t valid = copy_valid(samples.subspan(begin, end - begin), scratch);
    if (valid > 0) medians[filled++] = quantile_in_place(scratch.first(valid), 0.5);
  }
  return interval_over(std::span(medians).first(filled));
}

}  // namespace

std::size_t batch_scratch_size(std::size_t samples) noexcept {
  return std::max(kSamplesForBatches, samples / kBatches + 1);
}

SignRanks sign_ranks(std::size_t n) noexcept {
  SignRanks ranks;
  double tail = 0.0;                                    // P(X <= left_out - 1), X ~ Binomial(n, 1/2)
  double term = std::pow(0.5, static_cast<double>(n));  // P(X = k)
  for (std::size_t k = 0; 2 * k < n; ++k) {
    tail += term;
    const double coverage = 1.0 - 2.0 * tail;
    if (coverage < 0.95) break;
    ranks = {k, coverage};
    term *= static_cast<double>(n - k) / static_cast<double>(k + 1);
  }
  return ranks;
}

double quantile_in_place(std::span<double> values, double q) noexcept {
  if (values.empty()) return std::numeric_limits<double>::quiet_NaN();
  const double place = q * static_cast<double>(values.size() - 1);
  const auto below = static_cast<std::size_t>(place);
  const auto nth = values.begin() + static_cast<std::ptrdiff_t>(below);
  std::nth_element(values.begin(), nth, values.end());
  const double share = place - static_cast<double>(below);
  if (share == 0.0) return *nth;
  const double above = *std::min_element(nth + 1, values.end());
  return *nth + share * (above - *nth);
}

RobustInterval interval_of_median(std::span<const double> samples_ns, std::span<double> scratch) {
  return interval_of(samples_ns, scratch);
}

RobustInterval interval_of_median(std::span<const std::uint64_t> samples_ticks, std::span<double> scratch) {
  return interval_of(samples_ticks, scratch);
}

}  // namespace fairlap::loop
