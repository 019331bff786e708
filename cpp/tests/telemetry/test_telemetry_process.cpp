// The sampler's thread in the life of a process: exceptions, signals, forks and exits.

#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <thread>
#include <vector>

#include "fakes/fake_nvml.h"
#include "telemetry/nvml/nvml_source.hpp"
#include "tests/check.hpp"
#include "tests/telemetry/sampler_at_work.hpp"

using namespace fairlap::test;
using std::chrono::milliseconds;

namespace {

// How a child ended that did `body`; it is given ten seconds.
template <class Body>
int exit_of_child(Body body) {
  std::fflush(stdout);  // or the child would print once more what is waiting to be printed
  const pid_t child = fork();
  if (child == 0) {
    alarm(10);
    _exit(body());
  }
  int status = 0;
  waitpid(child, &status, 0);
  return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

}  // namespace

TEST("an exception that leaves the measured region stops the sampler on its way") {
  fake_nvml_reset();
  bool caught = false;
  try {
    Sampler sampler(nvml_sources(FAIRLAP_FAKE_NVML), engine_clock(),
                    every(milliseconds(1), milliseconds(10)));
    sampler.start();
    throw std::runtime_error("the measured program failed");
  } catch (const std::runtime_error&) {
    caught = true;
  }
  CHECK(caught);
  CHECK_EQUAL(fake_nvml_outstanding_inits(), 0);
  const std::int64_t calls = fake_nvml_call_count("*");
  std::this_thread::sleep_for(milliseconds(5));
  CHECK_EQUAL(fake_nvml_call_count("*"), calls);
}

TEST("the program's signal handlers do not run on the sampler's thread") {
  static std::atomic<bool> on_main{false};
  static const pthread_t main_thread = pthread_self();
  std::signal(SIGUSR1, [](int) { on_main.store(pthread_equal(pthread_self(), main_thread) != 0); });
  Sampler sampler(just(std::make_unique<Counting>()), engine_clock(),
                  every(milliseconds(1), milliseconds(10)));
  sampler.start();
  kill(getpid(), SIGUSR1);
  std::this_thread::sleep_for(milliseconds(5));
  sampler.stop();
  std::signal(SIGUSR1, SIG_DFL);
  CHECK(on_main.load());
}

TEST("a forked child has no sampler and reports it, while the parent's continues") {
  Sampler sampler(just(std::make_unique<Counting>()), engine_clock(),
                  every(milliseconds(1), milliseconds(10)));
  sampler.start();
  const int child = exit_of_child([&] {
    if (sampler.running() || !sampler.forked()) return 1;
    std::vector<Reading> readings;
    try {
      sampler.collect(readings);
      return 2;
    } catch (const ForkedSampler&) {
    }
    try {
      sampler.start();
      return 3;
    } catch (const ForkedSampler&) {
    }
    sampler.stop();
    sampler.stop();
#if defined(__SANITIZE_THREAD__)
    return 0;  // It ends a child of a program with threads that starts one of its own.
#else
    Sampler own(just(std::make_unique<Counting>()), engine_clock(), every(milliseconds(1), milliseconds(10)));
    own.start();
    own.stop();
    return collected(own).size() >= 4 ? 0 : 4;
#endif
  });
  CHECK_EQUAL(child, 0);
  const auto rounds = sampler.counts().rounds;
  wait_until([&] { return sampler.counts().rounds > rounds; });
  CHECK(sampler.running());
  sampler.stop();
}

TEST("a child that destroys its parent's sampler ends well, and leaves NVML to the parent") {
  fake_nvml_reset();
  auto sampler = std::make_unique<Sampler>(nvml_sources(FAIRLAP_FAKE_NVML), engine_clock(),
                                           every(milliseconds(1000), milliseconds(1000)));
  CHECK_EQUAL(exit_of_child([&] {
                sampler.reset();
                return static_cast<int>(fake_nvml_outstanding_inits());
              }),
              1);
  sampler.reset();
  CHECK_EQUAL(fake_nvml_outstanding_inits(), 0);
}

TEST("a process may exit while a sampler is still running") {
  const int ended = exit_of_child([] {
    auto* forgotten = new Sampler(just(std::make_unique<Counting>()), engine_clock(),
                                  every(milliseconds(1), milliseconds(1)));
    forgotten->start();
    std::this_thread::sleep_for(milliseconds(5));
    std::exit(7);
    return 1;
  });
  CHECK_EQUAL(ended, 7);
}

TEST("threads may start, stop and mark one sampler at the same time, and it ends stopped and whole") {
  Sampler sampler(just(std::make_unique<Counting>()), engine_clock(),
                  every(milliseconds(1), milliseconds(10)));
  std::vector<std::thread> threads;
  for (int t = 0; t < 3; ++t) {
    threads.emplace_back([&] {
      for (int i = 0; i < 20; ++i) {
        sampler.start();
        sampler.mark(7);
        sampler.stop();
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  sampler.stop();
  CHECK(!sampler.running());
  CHECK_EQUAL(in_a_row(collected(sampler), 0).size(), sampler.counts().rounds);
}

TEST("a process may exit while another thread stops and destroys its samplers") {
  for (int attempt = 0; attempt < 5; ++attempt) {
    const int ended = exit_of_child([] {
      std::thread([] {
        while (true) {
          Sampler brief(just(std::make_unique<Counting>()), engine_clock(),
                        every(milliseconds(1), milliseconds(1)));
          brief.start();
          brief.stop();
        }
      }).detach();
      std::this_thread::sleep_for(milliseconds(5));
      std::exit(7);
      return 1;
    });
#if defined(__SANITIZE_THREAD__)
    CHECK(ended != 0);  // It ends a child of a program with threads that starts one of its own.
#else
    CHECK_EQUAL(ended, 7);
#endif
  }
}

TEST_MAIN()
