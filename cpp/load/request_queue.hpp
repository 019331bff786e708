#pragma once

#include <atomic>
#include <cstdint>
#include <span>

#include "load/requests.hpp"

namespace fairlap::load {

// When waiting requests become a group: as soon as there are so many, or when the oldest has waited so long
// since it was due. With a wait of zero a worker takes whatever is there.
struct Batching {
  std::uint32_t largest = 1;
  double longest_wait_ns = 0.0;
};

// The order of service, without a clock and without sleeping: the caller says what time it is. Requests are
// neighbours in the order in which they are due, so the queue is two counters and allocates nothing.
class RequestQueue {
 public:
  RequestQueue(std::span<const double> due_ns, const Batching& batching) noexcept
      : due_ns_(due_ns), batching_(batching) {}
  RequestQueue(const RequestQueue&) = delete;  // Threads hold on to it.
  RequestQueue& operator=(const RequestQueue&) = delete;

  // How many requests are in the queue, or were.
  [[nodiscard]] std::uint32_t issued() const noexcept { return issued_.load(std::memory_order_acquire); }

  // Puts the request into the queue that is next according to `issued`. False when another thread has.
  bool issue(std::uint32_t request) noexcept {
    return issued_.compare_exchange_strong(request, request + 1, std::memory_order_acq_rel);
  }

  // What a worker that is free at this time does next: it serves the group; or, where that is empty, looks
  // again at `look_again_ns` or when a request is issued, whichever is first.
  struct Turn {
    Group group{};
    bool leaves_others = false;  // requests that another free worker may serve
    double look_again_ns = 0.0;
  };
  [[nodiscard]] Turn next(double now_ns) noexcept;

  [[nodiscard]] bool all_taken() const noexcept;

 private:
  // Requests and groups taken so far, which change together.
  struct Taken {
    std::uint32_t requests;
    std::uint32_t groups;
  };
  static constexpr std::size_t kCacheLine = 64;  // what issuing threads write must not slow the workers

  alignas(kCacheLine) std::atomic<std::uint32_t> issued_{0};
  alignas(kCacheLine) std::atomic<Taken> taken_{Taken{0, 0}};
  std::span<const double> due_ns_;
  Batching batching_;
};

}  // namespace fairlap::load
