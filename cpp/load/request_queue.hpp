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

// The order of service, without a clock and without sleeping: the caller says what time it is. A request is
// in the queue from when it is due, whether or not a thread runs then. Requests are neighbours in that order,
// so the queue is one counter and allocates nothing.
class RequestQueue {
 public:
  RequestQueue(std::span<const double> due_ns, const Batching& batching) noexcept
      : due_ns_(due_ns), batching_(batching) {}
  RequestQueue(const RequestQueue&) = delete;  // Threads hold on to it.
  RequestQueue& operator=(const RequestQueue&) = delete;

  // What a worker that is free at this time does next: it serves the group; or, where that is empty, looks
  // again at `look_again_ns`, which is infinite after the last request.
  struct Turn {
    Group group{};
    double closed_ns = 0.0;      // when the group was full, or its oldest request had waited long enough
    bool leaves_others = false;  // requests that another free worker may serve
    double look_again_ns = 0.0;
  };
  [[nodiscard]] Turn next(double now_ns) noexcept;

  [[nodiscard]] std::uint32_t taken() const noexcept {
    return taken_.load(std::memory_order_acquire).requests;
  }
  [[nodiscard]] bool all_taken() const noexcept { return taken() == due_ns_.size(); }

 private:
  // Requests and groups taken so far, which change together.
  struct Taken {
    std::uint32_t requests;
    std::uint32_t groups;
  };
  [[nodiscard]] std::uint32_t due_at(double now_ns, std::uint32_t first) const noexcept;

  std::atomic<Taken> taken_{Taken{0, 0}};
  std::span<const double> due_ns_;
  Batching batching_;
};

}  // namespace fairlap::load
