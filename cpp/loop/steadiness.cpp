#include "loop/steadiness.hpp"

#include <algorithm>

namespace fairlap::loop {

void Steadiness::add_window(double median) noexcept { last_[seen_++ % last_.size()] = median; }

bool Steadiness::settled() const noexcept {
  if (seen_ < last_.size()) return false;
  const auto [low, high] = std::minmax_element(last_.begin(), last_.end());
  return *high - *low <= std::max(resolution_, relative_tolerance_ * *low);
}

}  // namespace fairlap::loop
