#include "cuda/activity/spans.hpp"

#include <algorithm>

namespace fairlap::cuda {

double median_of(std::vector<double> values) {
  if (values.empty()) return 0.0;
  const auto middle = values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2);
  std::nth_element(values.begin(), middle, values.end());
  return *middle;
}

double smallest_step_of(std::vector<double> values) {
  constexpr double kRoundingNs = 0.75;
  std::sort(values.begin(), values.end());
  double smallest = 0.0;
  for (std::size_t i = 1; i < values.size(); ++i) {
    const double step = values[i] - values[i - 1];
    if (step > kRoundingNs && (smallest == 0.0 || step < smallest)) smallest = step;
  }
  return smallest;
}

}  // namespace fairlap::cuda
