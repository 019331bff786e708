#pragma once

#include <array>
#include <cstddef>

namespace fairlap::loop {

// No warm-up, a given number of calls, or as many as it takes until times have settled.
enum class WarmUpKind { none, calls, found };

// When has a warm-up settled? When the medians of the last few windows agree within a tolerance, or
// within the clock's resolution. This finds the start of a run; whether a process ever became steady
// is judged afterwards, from all its samples, by the verdict.
class Steadiness {
 public:
  Steadiness(double relative_tolerance, double resolution) noexcept
      : relative_tolerance_(relative_tolerance), resolution_(resolution) {}

  void add_window(double median) noexcept;
  [[nodiscard]] bool settled() const noexcept;

  static constexpr std::size_t kWindowsThatMustAgree = 4;

 private:
  double relative_tolerance_;
  double resolution_;
  std::array<double, kWindowsThatMustAgree> last_{};
  std::size_t seen_ = 0;
};

}  // namespace fairlap::loop
