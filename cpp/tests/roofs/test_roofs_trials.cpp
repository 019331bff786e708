#include <atomic>
#include <cmath>
#include <stdexcept>
#include <system_error>
#include <vector>

#include "roofs/kernel.hpp"
#include "roofs/team.hpp"
#include "roofs/trials.hpp"
#include "tests/check.hpp"

using namespace fairlap::roofs;

namespace {

std::vector<ArithmeticKernel> any_arithmetic() { return {arithmetic_kernels().front()}; }  // the baseline's
std::vector<TriadKernel> any_triad() { return {triad_kernels().front()}; }

template <class Exception, class Body>
bool throws(const Body& body) {
  try {
    body();
  } catch (const Exception&) {
    return true;
  }
  return false;
}

bool are_rates(const std::vector<double>& rates) {
  for (const double rate : rates) {
    if (!(rate > 0.0) || std::isinf(rate)) return false;
  }
  return !rates.empty();
}

}  // namespace

TEST("Every thread passes the barrier as often as the others") {
  constexpr std::size_t kThreads = 5;
  constexpr int kTurns = 300;
  SpinBarrier barrier(kThreads);
  std::atomic<int> begun{0};
  std::atomic<bool> in_step{true};
  run_on_threads(kThreads, {}, [&](std::size_t) {
    for (int turn = 0; turn < kTurns; ++turn) {
      ++begun;
      barrier.wait();
      if (begun < (turn + 1) * static_cast<int>(kThreads)) in_step = false;
      barrier.wait();
    }
  });
  CHECK(in_step);
  CHECK_EQUAL(begun.load(), kTurns * static_cast<int>(kThreads));
}

TEST("An exception on a thread is thrown to the caller after all have ended") {
  std::atomic<int> ended{0};
  CHECK(throws<std::runtime_error>([&] {
    run_on_threads(3, {}, [&](std::size_t number) {
      if (number == 1) throw std::runtime_error("of this thread");
      ++ended;
    });
  }));
  CHECK_EQUAL(ended.load(), 2);
}

#if defined(__linux__)
TEST("A core that does not exist is an error, and no thread runs") {
  std::atomic<int> ran{0};
  CHECK(throws<std::system_error>([&] { run_on_threads(2, {0, 1023}, [&](std::size_t) { ++ran; }); }));
  CHECK_EQUAL(ran.load(), 0);
}
#endif

TEST("No kernel, no thread, and another number of cores than of threads, are refused") {
  CHECK(throws<std::invalid_argument>(
      [] { Trials(std::vector<ArithmeticKernel>{}, {.threads = 1, .cores = {}}); }));
  CHECK(throws<std::invalid_argument>([] { Trials(any_arithmetic(), {.threads = 0, .cores = {}}); }));
  CHECK(throws<std::invalid_argument>([] { Trials(any_arithmetic(), {.threads = 2, .cores = {0}}); }));
}

TEST("One and several threads, also more than there are cores, give rates") {
  for (const std::size_t threads : {1, 2, 6}) {
    CHECK(are_rates(Trials(any_arithmetic(), {.threads = threads, .cores = {}}).rates(0.02)));
    CHECK(are_rates(Trials(any_triad(), 8 * 1024, {.threads = threads, .cores = {}}).rates(0.02)));
  }
}

TEST("Of several kernels the fastest is used") {
  ArithmeticKernel slow = arithmetic_kernels().front();
  slow.instructions = "slow";
  slow.operations_per_round /= 1'000;  // as much time for a thousandth of the work
  const ArithmeticKernel fast = arithmetic_kernels().front();
  CHECK_EQUAL(Trials({slow, fast}, {.threads = 2, .cores = {}}).instructions(), fast.instructions);
  CHECK_EQUAL(Trials({fast, slow}, {.threads = 2, .cores = {}}).instructions(), fast.instructions);
}

TEST("A time of zero gives the rate of one trial, and the trials can go on") {
  Trials trials(any_arithmetic(), {.threads = 2, .cores = {}});
  CHECK_EQUAL(trials.rates(0.0).size(), 1U);
  CHECK(are_rates(trials.rates(0.01)));
}

TEST("Arrays may be smaller than a step, and larger than a piece") {
  CHECK(are_rates(Trials(any_triad(), 1, {.threads = 1, .cores = {}}).rates(0.0)));
  CHECK(are_rates(Trials(any_triad(), 5'000'000, {.threads = 2, .cores = {}}).rates(0.0)));
}

TEST_MAIN()
