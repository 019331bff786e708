#include "load/request_queue.hpp"

#include <algorithm>
#include <limits>

namespace fairlap::load {

RequestQueue::Turn RequestQueue::next(double now_ns) noexcept {
  Taken taken = taken_.load(std::memory_order_acquire);
  while (true) {
    // Read after the other counter, so that it is never the smaller of the two.
    const std::uint32_t issued = issued_.load(std::memory_order_acquire);
    const std::uint32_t waiting = issued - taken.requests;
    if (waiting == 0) return {.look_again_ns = std::numeric_limits<double>::infinity()};
    const double closes_ns = due_ns_[taken.requests] + batching_.longest_wait_ns;
    if (waiting < batching_.largest && now_ns < closes_ns) return {.look_again_ns = closes_ns};
    const std::uint32_t count = std::min(waiting, batching_.largest);
    const Group group{.first = taken.requests, .count = count, .number = taken.groups};
    if (taken_.compare_exchange_weak(taken, {taken.requests + count, taken.groups + 1},
                                     std::memory_order_acq_rel)) {
      return {.group = group, .leaves_others = waiting > count};
    }
  }
}

bool RequestQueue::all_taken() const noexcept {
  return taken_.load(std::memory_order_acquire).requests == due_ns_.size();
}

}  // namespace fairlap::load
