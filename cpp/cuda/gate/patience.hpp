#pragma once

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <string>
#include <thread>

#include "cuda/driver/driver.hpp"

namespace fairlap::cuda {

// Whether an event has happened; throws on anything but yes and no.
inline bool is_done(const Driver& driver, CUevent event) {
  const CUresult code = driver.cuEventQuery.code_of(event);
  if (code == CUDA_SUCCESS) return true;
  if (code == CUDA_ERROR_NOT_READY) return false;
  driver.cuEventQuery.fail(code);
}

// Seconds as a message shows them: "60 s", "0.5 s".
inline std::string seconds_text(double seconds) {
  char text[32];
  std::snprintf(text, sizeof text, "%g s", seconds);
  return text;
}

// Waiting for the device by asking again and again: at once while the answer is near, then ever more rarely.
// The driver's own waits cannot be ended, neither by Ctrl-C nor by a limit.
class Patience {
 public:
  explicit Patience(std::chrono::nanoseconds limit) : begun_(Clock::now()), limit_(limit) {}

  // False when the limit has passed.
  bool wait_a_little() {
    const auto waited = Clock::now() - begun_;
    if (waited > limit_) return false;
    if (waited > kEager)
      std::this_thread::sleep_for(std::clamp<Clock::duration>(waited / 64, kShortest, kLongest));
    return true;
  }

  [[nodiscard]] std::chrono::nanoseconds waited() const { return Clock::now() - begun_; }

 private:
  using Clock = std::chrono::steady_clock;
  static constexpr Clock::duration kEager = std::chrono::milliseconds(1);
  static constexpr Clock::duration kShortest = std::chrono::microseconds(20);
  static constexpr Clock::duration kLongest = std::chrono::milliseconds(1);

  Clock::time_point begun_;
  std::chrono::nanoseconds limit_;
};

}  // namespace fairlap::cuda
