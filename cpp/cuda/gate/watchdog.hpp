#pragma once

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <functional>
#include <mutex>
#include <thread>

namespace fairlap::cuda {

// Opens a gate that its owner cannot open any more. A call that waits for the device inside the gate would
// otherwise wait for ever, holding the interpreter with it. It touches host memory only, never CUDA, so that
// it works while every CUDA call of the process is blocked.
class Watchdog {
 public:
  Watchdog(std::function<void(std::uint32_t)> release, std::chrono::nanoseconds limit);
  ~Watchdog();

  Watchdog(const Watchdog&) = delete;  // It owns a thread that refers to it.
  Watchdog& operator=(const Watchdog&) = delete;

  // Neither enters the kernel nor locks: both are on the path of every sample.
  void arm(std::uint32_t ticket) noexcept;
  void disarm() noexcept;

  // True when it was the watchdog that opened this gate.
  [[nodiscard]] bool released(std::uint32_t ticket) const noexcept { return released_.load() == ticket; }

 private:
  void watch();

  std::function<void(std::uint32_t)> release_;
  std::chrono::nanoseconds limit_;
  std::atomic<std::uint32_t> armed_{0};  // 0: nothing to watch
  std::atomic<std::int64_t> since_ns_{0};
  std::atomic<std::uint32_t> released_{0};
  std::mutex mutex_;
  std::condition_variable wake_;
  bool ending_ = false;
  std::thread thread_;
};

}  // namespace fairlap::cuda
