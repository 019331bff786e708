#include "fakes/cuda/blocking.hpp"

#include <algorithm>
#include <chrono>
#include <thread>

namespace fairlap::fakes {

CUresult query(World& w, const std::vector<OpPtr>& ops) {
  constexpr std::int64_t kLongestLookNs = 1'000'000;
  for (const OpPtr& op : ops) {
    if (!op || w.timeline.done(op)) continue;
    // Work behind a gate has no end yet, but there may be work before the gate that ends by itself.
    const std::optional<std::int64_t> next = op->timed ? op->end_ns : w.timeline.next_event_ns();
    if (next) {
      w.look_ns = std::clamp<std::int64_t>(2 * w.look_ns, 100, kLongestLookNs);
      w.timeline.advance_to(std::min(w.timeline.now_ns() + w.look_ns, *next));
    }
    return CUDA_ERROR_NOT_READY;
  }
  return CUDA_SUCCESS;
}

CUresult wait_for(World& w, Lock& lock, const std::vector<OpPtr>& ops) {
  using Clock = std::chrono::steady_clock;
  const std::uint64_t generation = w.generation;
  const Clock::time_point blocked_since = Clock::now();
  const auto wait = [&](const OpPtr& op) -> CUresult {
    while (op && !w.timeline.done(op)) {
      if (op->timed) {
        w.timeline.advance_to(op->end_ns);
        continue;
      }
      if (const auto next = w.timeline.next_event_ns()) {
        w.timeline.advance_to(*next);
        continue;
      }
      const auto real = Clock::now() - blocked_since;
      if (real > std::chrono::milliseconds(w.block_limit_ms)) return CUDA_ERROR_LAUNCH_TIMEOUT;
      // A spin that gives up after a virtual time leaves the host as much real time to open it first.
      if (const auto give_up_ns = w.timeline.next_give_up_ns();
          give_up_ns && real >= std::chrono::nanoseconds(*give_up_ns - w.timeline.now_ns())) {
        w.timeline.advance_to(*give_up_ns);
        continue;
      }
      lock.unlock();
      std::this_thread::sleep_for(std::chrono::microseconds(20));
      lock.lock();
      if (w.generation != generation) return CUDA_ERROR_DEINITIALIZED;
      w.timeline.observe();
    }
    return CUDA_SUCCESS;
  };
  ++w.blocked_calls;
  CUresult result = CUDA_SUCCESS;
  for (const OpPtr& op : ops) {
    if (result == CUDA_SUCCESS) result = wait(op);
  }
  --w.blocked_calls;
  return result;
}

}  // namespace fairlap::fakes
