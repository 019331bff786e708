#pragma once

#include <chrono>
#include <condition_variable>
#include <mutex>
#include <utility>

namespace fairlap::feed {

// One consumer at a time. A waiting thread can do so for a while and look around in between.
class Turn {
 public:
  [[nodiscard]] bool try_lock() {
    const std::scoped_lock lock(mutex_);
    return !std::exchange(taken_, true);
  }
  [[nodiscard]] bool try_lock_for(std::chrono::nanoseconds patience) {
    std::unique_lock lock(mutex_);
    if (!ended_.wait_for(lock, patience, [this] { return !taken_; })) return false;
    taken_ = true;
    return true;
  }
  void unlock() {
    {
      const std::scoped_lock lock(mutex_);
      taken_ = false;
    }
    ended_.notify_one();
  }

 private:
  std::mutex mutex_;
  std::condition_variable ended_;
  bool taken_ = false;
};

}  // namespace fairlap::feed
