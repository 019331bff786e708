#pragma once

#include <unistd.h>

#include <atomic>
#include <stdexcept>

namespace fairlap::bindings {

class MeasurementInProgress : public std::runtime_error {
 public:
  MeasurementInProgress()
      : std::runtime_error(
            "a measurement is already running in this process, and two would disturb each other; "
            "do not measure inside a measured callable, and measure from one thread at a time") {}
};

// Held while a measurement runs. A child forked in the middle of one owes nothing to its parent's, so
// the holder is named by process.
class OneAtATime {
 public:
  OneAtATime() {
    const pid_t me = getpid();
    pid_t holder = holder_.load();
    do {
      if (holder == me) throw MeasurementInProgress();
    } while (!holder_.compare_exchange_weak(holder, me));
  }
  ~OneAtATime() { holder_.store(0); }

  OneAtATime(const OneAtATime&) = delete;  // Its life is the measurement.
  OneAtATime& operator=(const OneAtATime&) = delete;

 private:
  inline static std::atomic<pid_t> holder_{0};
};

}  // namespace fairlap::bindings
