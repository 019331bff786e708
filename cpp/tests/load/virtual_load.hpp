#pragma once

// The queue of a load on a clock that only the test moves: workers are events, so every stamp is
// exact.

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <limits>
#include <vector>

#include "load/request_queue.hpp"

namespace fairlap::test {

struct Served {
  std::size_t worker = 0;
  load::Group group;
  double started_ns = 0.0;
  double completed_ns = 0.0;
};

struct VirtualLoad {
  std::vector<double> due_ns;
  std::size_t workers = 1;
  load::Batching batching{};
  std::function<double(const load::Group&)> length_ns;

  [[nodiscard]] std::vector<Served> run() const {
    constexpr double kNever = std::numeric_limits<double>::infinity();
    load::RequestQueue queue(due_ns, batching);
    std::vector<double> free_at_ns(workers, 0.0);
    std::vector<Served> served;
    double now_ns = 0.0;
    while (!queue.all_taken()) {
      double next_ns = kNever;
      for (std::size_t worker = 0; worker < workers; ++worker) {
        if (free_at_ns[worker] > now_ns) {
          next_ns = std::min(next_ns, free_at_ns[worker]);
          continue;
        }
        const load::RequestQueue::Turn turn = queue.next(now_ns);
        if (turn.group.count == 0) {
          next_ns = std::min(next_ns, turn.look_again_ns);
          continue;
        }
        free_at_ns[worker] = now_ns + length_ns(turn.group);
        served.push_back({.worker = worker,
                          .group = turn.group,
                          .started_ns = now_ns,
                          .completed_ns = free_at_ns[worker]});
        next_ns = std::min(next_ns, free_at_ns[worker]);
      }
      now_ns = next_ns;
    }
    return served;
  }
};

}  // namespace fairlap::test
