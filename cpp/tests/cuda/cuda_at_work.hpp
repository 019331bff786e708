#pragma once

#include <cmath>
#include <cstdlib>
#include <functional>
#include <memory>
#include <span>
#include <utility>
#include <vector>

#include "clock/clock.hpp"
#include "cuda/driver/driver.hpp"
#include "cuda/stream/stream_run.hpp"
#include "loop/work.hpp"
#include "tests/fake_cuda_setup.hpp"

// The engine's own driver over a faked device on which a framework is at work.
namespace fairlap::test {

inline std::unique_ptr<const cuda::Driver> open_fake_driver() {
  setenv("FAIRLAP_LIBCUDA", FAIRLAP_FAKE_CUDA, 1);
  setenv("FAIRLAP_LIBCUPTI", FAIRLAP_FAKE_CUPTI, 1);
  cuda::Driver::Opened opened = cuda::Driver::open();
  if (!opened.driver) throw Failure("the fake driver cannot be opened: " + opened.absent_because);
  return std::move(opened.driver);
}

// What the engine gave back it never uses again, not even where it ignores the error.
inline const bool misuse_fails = [] {
  after_each() = [] {
    if (fake_cuda_misuses() > 0) fail(__FILE__, __LINE__, fake_cuda_misuse(0));
  };
  return true;
}();

struct EngineAtWork : FrameworkAtWork {
  std::unique_ptr<const cuda::Driver> driver = open_fake_driver();
};

// A work that does what a test sets, and counts.
class ScriptedWork final : public loop::Work {
 public:
  explicit ScriptedWork(std::function<bool()> call, std::function<bool()> completion = nullptr)
      : call_(std::move(call)), completion_(std::move(completion)) {}

  void enter() noexcept override { ++depth; }
  bool leave() noexcept override {
    --depth;
    return false;
  }
  bool call() noexcept override {
    ++calls;
    ++alive;
    if (depth != 1) entered_wrongly = true;
    return call_();
  }
  bool wait() noexcept override { return completion_(); }
  bool drop() noexcept override {
    alive = 0;
    return true;
  }
  bool stop_requested() noexcept override { return stop_at != 0 && calls >= stop_at; }
  [[nodiscard]] bool has_completion() const noexcept override { return completion_ != nullptr; }

  int calls = 0;
  int stop_at = 0;
  int depth = 0;
  int alive = 0;
  bool entered_wrongly = false;

 private:
  std::function<bool()> call_;
  std::function<bool()> completion_;
};

inline std::function<bool()> kernel_of(std::uint64_t stream, std::int64_t duration_ns,
                                       const char* name = "work") {
  return [=] { return fake_cuda_kernel(stream, name, duration_ns) == CUDA_SUCCESS; };
}

// As quick as a run can be: one sample after another, no waiting for the gate's or the device's limits.
inline cuda::StreamSettings quick_settings(std::size_t samples) {
  cuda::StreamSettings settings;
  settings.stop.samples = samples;
  settings.calls_per_sample = 1;
  settings.warm_up = loop::WarmUpKind::calls;
  settings.warm_up_calls = 4;
  settings.timeout_s = 5.0;
  settings.gate_timeout_s = 5.0;
  return settings;
}

inline std::unique_ptr<cuda::StreamRecord> time_it(const EngineAtWork& at_work, loop::Work& work,
                                                   const cuda::StreamSettings& settings) {
  return cuda::time_on_stream(*at_work.driver, at_work.stream, -1, {&work}, clock::Clock::best(), settings);
}

// Everything that the engine may own; a test that leaves any of it behind has found a leak. One module stays
// in each context on purpose.
inline std::int64_t outstanding_objects() {
  std::int64_t objects = 0;
  for (const char* kind : {"streams", "events", "device_allocations", "host_allocations", "graphs",
                           "graph_execs", "further_modules", "primary_retains", "pushed_contexts"}) {
    objects += fake_cuda_outstanding(kind);
  }
  return objects;
}

template <class Act>
std::string message_of(Act&& act) {
  try {
    act();
  } catch (const std::exception& error) {
    return error.what();
  }
  return "";
}

inline bool all_equal(std::span<const double> values, double expected) {
  for (const double value : values) {
    if (!(std::abs(value - expected) < 0.01)) return false;
  }
  return !values.empty();
}

}  // namespace fairlap::test
