#include "roofs/team.hpp"

#include <exception>
#include <mutex>
#include <system_error>
#include <thread>
#if defined(__linux__)
#include <pthread.h>
#include <sched.h>
#endif
#if defined(__x86_64__)
#include <emmintrin.h>
#endif

namespace fairlap::roofs {
namespace {

// About a millisecond. On a busy machine the threads meet only while both have a core, so one that has it
// waits for the others before it gives it away.
constexpr int kSpinsBeforeYielding = 20'000;

void relax() noexcept {
#if defined(__x86_64__)
  _mm_pause();
#elif defined(__aarch64__)
  asm volatile("yield");
#endif
}

#if defined(__linux__)
void stay_on(int core) {
  cpu_set_t set;
  CPU_ZERO(&set);
  CPU_SET(static_cast<unsigned>(core), &set);
  const int failed = pthread_setaffinity_np(pthread_self(), sizeof set, &set);
  if (failed != 0)
    throw std::system_error(failed, std::generic_category(),
                            "a thread cannot be kept on core " + std::to_string(core));
}
#else
void stay_on(int /*core*/) {}
#endif

enum class Start { not_yet, go, abandoned };

}  // namespace

void SpinBarrier::wait() noexcept {
  const std::uint32_t turn = turn_.load(std::memory_order_relaxed);
  if (arrived_.fetch_add(1, std::memory_order_acq_rel) + 1 == threads_) {
    arrived_.store(0, std::memory_order_relaxed);
    turn_.store(turn + 1, std::memory_order_release);
    return;
  }
  for (int spins = 0; turn_.load(std::memory_order_acquire) == turn; ++spins) {
    if (spins < kSpinsBeforeYielding) {
      relax();
    } else {
      std::this_thread::yield();
    }
  }
}

void run_on_threads(std::size_t threads, const std::vector<int>& cores,
                    const std::function<void(std::size_t)>& body) {
  std::atomic<Start> start{Start::not_yet};
  std::atomic<bool> all_in_place{true};
  SpinBarrier ready(threads);
  std::mutex failure_lock;
  std::exception_ptr failure;
  const auto keep_failure = [&] {
    const std::scoped_lock lock(failure_lock);
    if (!failure) failure = std::current_exception();
  };
  // The body may hold barriers, so it runs on every thread or on none.
  const auto whole = [&](std::size_t number) {
    start.wait(Start::not_yet);
    if (start == Start::abandoned) return;
    try {
      if (!cores.empty()) stay_on(cores.at(number));
    } catch (...) {
      keep_failure();
      all_in_place = false;
    }
    ready.wait();
    if (!all_in_place) return;
    try {
      body(number);
    } catch (...) {
      keep_failure();
    }
  };
  std::vector<std::thread> running;
  running.reserve(threads);
  try {
    for (std::size_t number = 0; number < threads; ++number) running.emplace_back(whole, number);
    start = Start::go;
  } catch (...) {  // the system has no more threads
    keep_failure();
    start = Start::abandoned;
  }
  start.notify_all();
  for (std::thread& thread : running) thread.join();
  if (failure) std::rethrow_exception(failure);
}

}  // namespace fairlap::roofs
