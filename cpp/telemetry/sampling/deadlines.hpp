#pragma once

#include <cstdint>

namespace fairlap::telemetry {

// When rounds are due: on a fixed grid, so that lateness never adds up, each moved forward by a drawn part of
// the period, so that the rounds do not keep step with what they measure. Times are of CLOCK_MONOTONIC.
class Deadlines {
 public:
  // `jitter_share` of the period, from 0 to 1, is the most by which a deadline is moved.
  Deadlines(std::int64_t start_ns, std::int64_t period_ns, double jitter_share, std::uint64_t seed);

  // Of the round that comes next.
  [[nodiscard]] std::int64_t next_ns() const noexcept { return next_ns_; }
  [[nodiscard]] std::uint64_t number() const noexcept { return number_; }

  // The round is over. Deadlines that have passed meanwhile are skipped; returns how many.
  std::uint64_t advance(std::int64_t now_ns) noexcept;

 private:
  void draw() noexcept;

  std::int64_t start_ns_;
  std::int64_t period_ns_;
  double most_jitter_ns_;
  std::uint64_t random_;
  std::uint64_t number_ = 0;
  std::int64_t next_ns_ = 0;
};

}  // namespace fairlap::telemetry
