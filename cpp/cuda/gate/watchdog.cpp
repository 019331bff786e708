#include "cuda/gate/watchdog.hpp"

#include <algorithm>

namespace fairlap::cuda {
namespace {

std::int64_t now_ns() noexcept {
  return std::chrono::duration_cast<std::chrono::nanoseconds>(
             std::chrono::steady_clock::now().time_since_epoch())
      .count();
}

}  // namespace

Watchdog::Watchdog(std::function<void(std::uint32_t)> release, std::chrono::nanoseconds limit)
    : release_(std::move(release)), limit_(limit), thread_([this] { watch(); }) {}

Watchdog::~Watchdog() {
  {
    const std::lock_guard lock(mutex_);
    ending_ = true;
  }
  wake_.notify_one();
  thread_.join();
}

void Watchdog::arm(std::uint32_t ticket) noexcept {
  since_ns_.store(
      now_ns());  // First the time, then the ticket: the watch never sees a new ticket with an old time.
  armed_.store(ticket);
}

void Watchdog::disarm() noexcept { armed_.store(0); }

void Watchdog::watch() {
  using std::chrono::milliseconds;
  const auto period =
      std::clamp(std::chrono::duration_cast<milliseconds>(limit_ / 8), milliseconds(1), milliseconds(20));
  std::unique_lock lock(mutex_);
  while (!wake_.wait_for(lock, period, [this] { return ending_; })) {
    const std::uint32_t ticket = armed_.load();
    if (ticket == 0 || now_ns() - since_ns_.load() < limit_.count()) continue;
    if (released_.exchange(ticket) != ticket) release_(ticket);
  }
}

}  // namespace fairlap::cuda
