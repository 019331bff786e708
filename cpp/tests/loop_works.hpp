// Works that the tests of the loop time: counted, spinning, prepared, interrupted.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <vector>

#include "clock/clock.hpp"
#include "loop/run.hpp"

namespace fairlap::test {

// Nothing besides the call, which is what most works here are.
class PlainWork : public loop::Work {
 public:
  void enter() noexcept override {}
  bool leave() noexcept override { return false; }
  bool wait() noexcept override { return true; }
  bool drop() noexcept override { return true; }
  bool stop_requested() noexcept override { return false; }
  [[nodiscard]] bool has_completion() const noexcept override { return false; }
};

// Work of a scripted kind: how often it was called is all it knows.
class CountedWork final : public PlainWork {
 public:
  void enter() noexcept override { ++entered; }
  bool leave() noexcept override {
    ++left;
    return stop_at_leave;
  }
  bool call() noexcept override { return ++calls != raise_at_call; }
  bool wait() noexcept override {
    ++waits;
    return true;
  }
  bool stop_requested() noexcept override { return calls >= stop_at_call; }
  [[nodiscard]] bool has_completion() const noexcept override { return with_completion; }
  bool begin_drawn(std::size_t /*number*/) noexcept override {
    calls_before_drawn.push_back(calls);
    return true;
  }
  bool end_drawn(std::size_t /*number*/, double wall_ns) noexcept override {
    ++drawn_ended;
    return wall_ns < 1e9;
  }

  std::vector<std::uint64_t> calls_before_drawn;
  std::uint64_t drawn_ended = 0;
  std::uint64_t calls = 0;
  std::uint64_t waits = 0;
  std::uint64_t entered = 0;
  std::uint64_t left = 0;
  std::uint64_t raise_at_call = 0;
  std::uint64_t stop_at_call = std::numeric_limits<std::uint64_t>::max();
  bool stop_at_leave = false;
  bool with_completion = false;
};

// Spins on the operating system's clock, which knows nothing of the timestamp counter, and notes how long
// each spin really took: on a busy machine the spinner is sent away like anyone else.
class SpinningWork final : public PlainWork {
 public:
  explicit SpinningWork(std::uint64_t length_ns) : length_ns_(length_ns) { lengths_ns.reserve(100'000); }
  bool call() noexcept override {
    const std::uint64_t begin = clock::MonotonicRaw::now_ns();
    std::uint64_t now = begin;
    while (now - begin < length_ns_) now = clock::MonotonicRaw::now_ns();
    if (lengths_ns.size() < lengths_ns.capacity()) lengths_ns.push_back(static_cast<double>(now - begin));
    return true;
  }

  std::vector<double> lengths_ns;

 private:
  std::uint64_t length_ns_;
};

// Makes each call ready, which takes far longer than the call. It raises at a given preparation.
class PreparedWork final : public PlainWork {
 public:
  static constexpr std::uint64_t kPreparationNs = 1'000'000;

  bool prepare() noexcept override {
    const std::uint64_t begin = clock::MonotonicRaw::now_ns();
    while (clock::MonotonicRaw::now_ns() - begin < kPreparationNs) {
    }
    ready = ++preparations != raise_at;
    return ready;
  }
  [[nodiscard]] bool has_preparation() const noexcept override { return true; }
  bool call() noexcept override {
    ++calls;
    unready += ready ? 0 : 1;
    ready = false;
    return true;
  }
  [[nodiscard]] bool has_completion() const noexcept override { return with_completion; }
  bool begin_drawn(std::size_t /*number*/) noexcept override { return true; }
  bool end_drawn(std::size_t /*number*/, double wall_ns) noexcept override {
    shortest_drawn_ns = std::min(shortest_drawn_ns, wall_ns);
    return true;
  }

  std::uint64_t preparations = 0;
  std::uint64_t calls = 0;
  std::uint64_t unready = 0;
  std::uint64_t raise_at = 0;
  double shortest_drawn_ns = 1e18;
  bool with_completion = false;
  bool ready = false;
};

// An empty call that is kept from its core once, for longer than a window of the warm-up lasts.
class InterruptedWork final : public PlainWork {
 public:
  explicit InterruptedWork(std::uint64_t interrupted_call) : interrupted_call_(interrupted_call) {}
  bool call() noexcept override {
    const std::uint64_t begin = ++calls == interrupted_call_ ? clock::MonotonicRaw::now_ns() : 0;
    while (begin != 0 && clock::MonotonicRaw::now_ns() - begin < 20'000'000) {
    }
    return true;
  }

  std::uint64_t calls = 0;

 private:
  std::uint64_t interrupted_call_;
};

}  // namespace fairlap::test
