#include "load/request_queue.hpp"

#include <algorithm>
#include <limits>

namespace fairlap::load {

RequestQueue::Turn RequestQueue::next(double now_ns) noexcept {
  constexpr double kNever = std::numeric_limits<double>::infinity();
  Taken taken = taken_.load(std::memory_order_acquire);
  while (true) {
    const std::uint32_t first = taken.requests;
    if (first == due_ns_.size()) return {.look_again_ns = kNever};
    const std::uint32_t count = due_at(now_ns, first);
    if (count == 0) return {.look_again_ns = due_ns_[first]};
    const std::size_t last = std::size_t{first} + batching_.largest - 1;  // of a full group
    const double full_ns = last < due_ns_.size() ? due_ns_[last] : kNever;
    const double closed_ns = std::min(due_ns_[first] + batching_.longest_wait_ns, full_ns);
    if (now_ns < closed_ns) return {.look_again_ns = closed_ns};
    if (taken_.compare_exchange_weak(taken, {first + count, taken.groups + 1}, std::memory_order_acq_rel)) {
      const std::size_t next = std::size_t{first} + count;
      return {.group = {.first = first, .count = count, .number = taken.groups},
              .closed_ns = closed_ns,
              .leaves_others = next < due_ns_.size() && due_ns_[next] <= now_ns};
    }
  }
}

// How many requests are due from this one on, up to a full group.
std::uint32_t RequestQueue::due_at(double now_ns, std::uint32_t first) const noexcept {
  const auto left = static_cast<std::uint32_t>(due_ns_.size() - first);
  const std::uint32_t most = std::min(batching_.largest, left);
  std::uint32_t count = 0;
  while (count < most && due_ns_[first + count] <= now_ns) ++count;
  return count;
}

}  // namespace fairlap::load
