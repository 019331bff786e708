#pragma once

#include <span>

namespace fairlap::roofs {

// One limit of the machine: operations or bytes per second.
struct Roof {
  double value = 0.0;
  double low = 0.0;
  double high = 0.0;
};

// The share of trials that are slower than the roof. Whatever disturbs a trial slows it down, so a middle
// would be the speed of a busy machine; and a maximum, as STREAM reports it, has no interval and grows with
// the number of trials.
inline constexpr double kShareBelowRoof = 0.95;

// That quantile of the rates, and its 95 % interval between two of them, whose ranks follow from the binomial
// distribution alone (Conover, Practical Nonparametric Statistics, 3.2). With too few rates for an upper
// bound, the largest is it. Sorts the rates; NaN without any.
Roof roof_of(std::span<double> rates) noexcept;

}  // namespace fairlap::roofs
