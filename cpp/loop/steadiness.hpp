#pragma once

#include <array>
#include <cstddef>

namespace fairlap::loop {

// When has a warm-up settled? When the medians of the last few windows agree within a tolerance, or
// within what the clock can tell. This finds the start of a run; whether a process ever became steady
// is judged afterwards, from all its samples, by the verdict.
class Steadiness {
 public:
  Steadiness(double relative_tolerance, double resolution) noexcept
      : relative_tolerance_(relative_tolerance), resolution_(resolution) {}

  void add_window(double median) noexcept;
  [[nodiscard]] bool settled() const noexcept;

  static constexpr std::size_t windows_that_must_agree = 4;

 private:
  double relative_tolerance_;
  double resolution_;
  std::array<double, windows_that_must_agree> last_{};
  std::size_t seen_ = 0;
};

}  // namespace fairlap::loop
