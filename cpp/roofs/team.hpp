#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <vector>

namespace fairlap::roofs {

// Where threads wait for each other without entering the kernel, unless another program holds a core.
class SpinBarrier {
 public:
  explicit SpinBarrier(std::size_t threads) : threads_(threads) {}
  SpinBarrier(const SpinBarrier&) = delete;  // Threads wait at it.
  SpinBarrier& operator=(const SpinBarrier&) = delete;

  void wait() noexcept;

 private:
  std::size_t threads_;
  std::atomic<std::size_t> arrived_{0};
  std::atomic<std::uint32_t> turn_{0};
};

// Runs `body(number)` on so many threads at once and returns when all have ended; rethrows the first
// exception. With `cores`, one for each thread, a thread stays on its core (on Linux; other systems offer no
// way).
void run_on_threads(std::size_t threads, const std::vector<int>& cores,
                    const std::function<void(std::size_t)>& body);

}  // namespace fairlap::roofs
