#include "roofs/roof.hpp"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <limits>

namespace fairlap::roofs {
namespace {

constexpr double kTail = 0.025;  // of a 95 % interval, at each end

// The ranks, from 0, of the bounds: P(X <= low) and P(X > high) are each at most kTail, where X, the number
// of rates below the true quantile, is binomial.
struct Ranks {
  std::size_t low = 0;
  std::size_t high = 0;
};

Ranks ranks_of(std::size_t n) noexcept {
  Ranks ranks{0, n - 1};
  const auto count = static_cast<double>(n);
  double log_term = count * std::log1p(-kShareBelowRoof);  // P(X = 0)
  const double log_odds = std::log(kShareBelowRoof) - std::log1p(-kShareBelowRoof);
  double below = 0.0;  // P(X <= k)
  for (std::size_t k = 0; k < n; ++k) {
    below += std::exp(log_term);
    if (below <= kTail) ranks.low = k;
    if (1.0 - below <= kTail) {
      ranks.high = k;
      break;
    }
    log_term += log_odds + std::log(static_cast<double>(n - k)) - std::log(static_cast<double>(k + 1));
  }
  return ranks;
}

}  // namespace

Roof roof_of(std::span<double> rates) noexcept {
  constexpr double kNone = std::numeric_limits<double>::quiet_NaN();
  if (rates.empty()) return {kNone, kNone, kNone};
  std::sort(rates.begin(), rates.end());
  const Ranks ranks = ranks_of(rates.size());
  const auto place =
      static_cast<std::size_t>(std::ceil(kShareBelowRoof * static_cast<double>(rates.size()))) - 1;
  return {rates[place], rates[ranks.low], rates[std::max(ranks.high, place)]};
}

}  // namespace fairlap::roofs
