#pragma once

#include <algorithm>
#include <cstddef>
#include <optional>

#include "loop/robust_interval.hpp"

namespace fairlap::loop {

// Why a run ended. The last three concern a device.
enum class StopReason { samples, seconds, target, full, interrupt, raised, timeout, gate, cuda_error };

// What the caller asked for. A zero means "not asked"; whatever is reached first stops the run.
struct StopRule {
  std::size_t samples = 0;
  double seconds = 0.0;
  double target_half_width = 0.0;  // relative, of the interval of the median; spread only
};

// Applies the rule while samples are taken. A target is judged by the size of the spread alone: no
// difference is ever seen, so none can be favoured.
class StopCheck {
 public:
  // `capacity` is the number of samples that there is room for, `resolution` the finest step of a sample.
  StopCheck(const StopRule& rule, std::size_t capacity, double resolution = 0.0) noexcept
      : rule_(rule), capacity_(capacity), resolution_(resolution) {}

  // `taken` samples were begun, of which `stored` can be looked at.
  template <class ElapsedSeconds, class IntervalOfMedian>
  std::optional<StopReason> reached(std::size_t taken, std::size_t stored, const ElapsedSeconds& elapsed_s,
                                    const IntervalOfMedian& interval_of_median) {
    if (rule_.samples > 0 && taken >= rule_.samples) return StopReason::samples;
    if (rule_.target_half_width > 0.0 && stored >= next_look_) {
      next_look_ = stored + stored / 4;
      if (is_narrow(interval_of_median())) return StopReason::target;
    }
    if (rule_.seconds > 0.0 && elapsed_s() >= rule_.seconds) return StopReason::seconds;
    if (taken >= capacity_) return StopReason::full;
    return std::nullopt;
  }

 private:
  [[nodiscard]] bool is_narrow(const RobustInterval& interval) const noexcept {
    const double half_width = std::max(interval.high - interval.low, resolution_) / 2;
    return interval.exists() && half_width <= rule_.target_half_width * interval.median;
  }

  StopRule rule_;
  std::size_t capacity_;
  double resolution_;
  std::size_t next_look_ = 40;  // from here on the interval is taken over batches; see robust_interval.hpp
};

}  // namespace fairlap::loop
