#include "feed/forks.hpp"

#include <pthread.h>

#include <atomic>

namespace fairlap::feed {
namespace {

std::atomic<std::uint64_t> forks{0};

void count_a_fork() noexcept { ++forks; }

}  // namespace

std::uint64_t forks_behind_us() noexcept {
  static const int registered = pthread_atfork(nullptr, nullptr, count_a_fork);
  static_cast<void>(registered);
  return forks.load(std::memory_order_relaxed);
}

}  // namespace fairlap::feed
