#pragma once

#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <cstdint>

namespace fairlap::telemetry {

// Holds the fast lane to a share of wall time: where its calls are expensive, it is read in every second,
// third,
// ... round only. What a round costs is the median of the last ones, since one that was interrupted shows
// nothing of the calls.
class CallBudget {
 public:
  CallBudget(double most_share, std::int64_t period_ns)
      : affordable_ns_(most_share * static_cast<double>(period_ns)) {}

  // Whether the fast lane may be read in this round. To be asked once for each; after a yes, spent() is
  // called.
  [[nodiscard]] bool due() noexcept { return --rounds_to_go_ <= 0; }

  void spent(std::int64_t ns) noexcept {
    latest_ns_[next_++ % latest_ns_.size()] = ns;
    const std::size_t known = std::min(next_, latest_ns_.size());
    auto sorted = latest_ns_;
    const auto middle = sorted.begin() + static_cast<std::ptrdiff_t>(known / 2);
    std::nth_element(sorted.begin(), middle, sorted.begin() + static_cast<std::ptrdiff_t>(known));
    const double rounds = std::ceil(static_cast<double>(*middle) / affordable_ns_);
    rounds_between_ = static_cast<std::int64_t>(std::clamp(rounds, 1.0, kMostRounds));
    rounds_to_go_ = rounds_between_;
  }

 private:
  static constexpr double kMostRounds = 1e6;

  double affordable_ns_;
  std::array<std::int64_t, 9> latest_ns_{};
  std::size_t next_ = 0;
  std::int64_t rounds_between_ = 1;
  std::int64_t rounds_to_go_ = 1;
};

}  // namespace fairlap::telemetry
