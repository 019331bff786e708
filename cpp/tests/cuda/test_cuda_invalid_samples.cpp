// Samples that say nothing of the work: their gate timed out, or work came late or on another stream.

#include <array>
#include <cmath>
#include <span>
#include <utility>

#include "tests/check.hpp"
#include "tests/cuda/cuda_at_work.hpp"

using namespace fairlap;
using namespace fairlap::test;
using cuda::GateKind;
using cuda::GuardKind;
using cuda::Invalid;
using cuda::Method;
using cuda::Quantity;
using cuda::StreamSettings;
using loop::StopReason;

namespace {

// Longer ones where a busy machine let the time pass for other gates too.
constexpr std::array kGateTimeoutsS{0.05, 0.4, 3.2};

std::size_t invalid_in(std::span<const double> values) {
  std::size_t invalid = 0;
  for (const double value : values) invalid += std::isnan(value) ? 1 : 0;
  return invalid;
}

// Launches when the engine has seen the call return, as another thread of a framework would; or within the
// call, once so many were late.
class LaunchedLate final : public loop::Work {
 public:
  explicit LaunchedLate(std::uint64_t stream, int late_calls = 1'000'000)
      : stream_(stream), late_calls_(late_calls) {}

  void enter() noexcept override {}
  bool leave() noexcept override {
    launch();
    return false;
  }
  bool call() noexcept override {
    due_ = true;
    if (--late_calls_ < 0) launch();
    return true;
  }
  bool wait() noexcept override {
    launch();
    return true;
  }
  bool drop() noexcept override { return true; }
  bool stop_requested() noexcept override { return false; }
  [[nodiscard]] bool has_completion() const noexcept override { return true; }

 private:
  void launch() noexcept {
    if (std::exchange(due_, false)) fake_cuda_kernel(stream_, "late", 3000);
  }

  std::uint64_t stream_;
  int late_calls_;
  bool due_ = false;
};

// Works on its stream, and for some calls a thread of the framework enqueues a copy on another stream when
// the call has returned.
class CopiedBackLate final : public loop::Work {
 public:
  CopiedBackLate(std::uint64_t stream, std::uint64_t copies, int every)
      : stream_(stream), copies_(copies), every_(every) {}

  void enter() noexcept override {}
  bool leave() noexcept override {
    // Long, because a guard that waits forgives what this busy machine's own delays may explain.
    if (std::exchange(due_, false)) fake_cuda_copy(copies_, 2, 1 << 20, 100'000'000);
    return false;
  }
  bool call() noexcept override {
    due_ = ++calls % every_ == 0;
    return fake_cuda_kernel(stream_, "fusion", 5000) == CUDA_SUCCESS;
  }
  bool wait() noexcept override { return true; }
  bool drop() noexcept override { return true; }
  bool stop_requested() noexcept override { return false; }
  [[nodiscard]] bool has_completion() const noexcept override { return false; }

  int calls = 0;

 private:
  std::uint64_t stream_;
  std::uint64_t copies_;
  int every_;
  bool due_ = false;
};

}  // namespace

TEST("a gate that the call waits for is opened by the watchdog and the run continues without it") {
  const EngineAtWork at_work;
  ScriptedWork work([&] {
    fake_cuda_kernel(at_work.stream, "work", 5000);
    return cuStreamSynchronize(at_work.s()) == CUDA_SUCCESS;
  });
  StreamSettings settings = quick_settings(5);
  settings.gate_timeout_s = 0.05;
  const auto record = time_it(at_work, work, settings);
  CHECK(record->gate == GateKind::none);
  CHECK(contains(record->gate_because, "waits for the device"));
  CHECK(all_equal(record->table->column(Quantity::device_span_ns), 5000));
  settings.gate = GateKind::stream_wait;
  CHECK(contains(message_of([&] { time_it(at_work, work, settings); }), "gate='none'"));
  CHECK_EQUAL(outstanding_objects(), 0);
}

TEST("a sample whose gate timed out is invalid and the others are kept") {
  for (const double gate_timeout_s : kGateTimeoutsS) {
    const EngineAtWork at_work;
    ScriptedWork* self = nullptr;
    ScriptedWork work([&] {
      fake_cuda_kernel(at_work.stream, "work", 5000);
      return self->calls != 10 || cuStreamSynchronize(at_work.s()) == CUDA_SUCCESS;
    });
    self = &work;
    StreamSettings settings = quick_settings(20);
    settings.gate_timeout_s = gate_timeout_s;
    const auto record = time_it(at_work, work, settings);
    if (record->table->count(Invalid::gate_timed_out) != 1 && gate_timeout_s < kGateTimeoutsS.back())
      continue;
    CHECK_EQUAL(record->table->size(), 20U);
    CHECK_EQUAL(record->table->count(Invalid::gate_timed_out), 1U);
    CHECK_EQUAL(invalid_in(record->table->column(Quantity::device_span_ns)), 1U);
    CHECK(record->stopped_by == StopReason::samples);
    break;
  }
}

TEST("a gate that times out while sampling halves the calls per sample and drops no sample silently") {
  for (const double gate_timeout_s : kGateTimeoutsS) {
    const EngineAtWork at_work;
    ScriptedWork* self = nullptr;
    ScriptedWork work([&] {
      fake_cuda_kernel(at_work.stream, "work", 5000);
      return self->calls != 100 || cuStreamSynchronize(at_work.s()) == CUDA_SUCCESS;
    });
    self = &work;
    StreamSettings settings = quick_settings(30);
    settings.calls_per_sample = 8;
    settings.gate_timeout_s = gate_timeout_s;
    const auto record = time_it(at_work, work, settings);
    if (record->halvings != 1 && gate_timeout_s < kGateTimeoutsS.back()) continue;
    CHECK_EQUAL(record->calls_per_sample, 4U);
    CHECK_EQUAL(record->halvings, 1U);
    CHECK_EQUAL(record->table->size(), 30U);
    const std::size_t invalid = invalid_in(record->table->column(Quantity::device_span_ns));
    CHECK_EQUAL(invalid, record->table->count(Invalid::gate_timed_out) +
                             record->table->count(Invalid::calls_were_reduced));
    CHECK(invalid > 5 && invalid < 20);
    CHECK_EQUAL(record->table->valid(), 30U - invalid);
    break;
  }
}

TEST("a call that always waits once sampling has begun ends the run with its reason") {
  for (const double gate_timeout_s : kGateTimeoutsS) {
    const EngineAtWork at_work;
    ScriptedWork* self = nullptr;
    ScriptedWork work([&] {
      fake_cuda_kernel(at_work.stream, "work", 5000);
      return self->calls < 10 || cuStreamSynchronize(at_work.s()) == CUDA_SUCCESS;
    });
    self = &work;
    StreamSettings settings = quick_settings(50);
    settings.gate_timeout_s = gate_timeout_s;
    const auto record = time_it(at_work, work, settings);
    if (record->table->valid() != 5 && gate_timeout_s < kGateTimeoutsS.back()) continue;
    CHECK(record->stopped_by == StopReason::gate);
    CHECK(contains(record->error, "gate='none'"));
    CHECK_EQUAL(record->table->valid(), 5U);
    break;
  }
}

TEST("a gate that does not work here gives way to the next, and the result has the reason") {
  const EngineAtWork at_work;
  fake_cuda_set_stream_waits(1);
  ScriptedWork work(kernel_of(at_work.stream, 4000));
  auto record = time_it(at_work, work, quick_settings(5));
  CHECK(record->gate == GateKind::spin);
  CHECK(contains(record->gate_because, "CUDA_ERROR_NOT_SUPPORTED"));
  CHECK(all_equal(record->table->column(Quantity::device_span_ns), 4000));
  fake_cuda_set_stream_waits(2);
  record = time_it(at_work, work, quick_settings(5));
  CHECK(record->gate == GateKind::spin);
  CHECK(contains(record->gate_because, "does not hold"));
  StreamSettings settings = quick_settings(5);
  settings.gate = GateKind::stream_wait;
  CHECK(contains(message_of([&] { time_it(at_work, work, settings); }), "does not hold"));
}

TEST("work that outlives the stop event invalidates the sample") {
  const EngineAtWork at_work;
  const std::uint64_t other = fake_cuda_create_stream(at_work.context, 1);
  // Long, because a guard that waits forgives what this busy machine's own delays may explain.
  for (const bool context_events : {true, false}) {
    if (!context_events) fake_cuda_set_driver_version(12040);
    const auto driver = open_fake_driver();
    ScriptedWork work([&] {
      fake_cuda_kernel(at_work.stream, "seen", 5000);
      return fake_cuda_kernel(other, "hidden", 100'000'000) == CUDA_SUCCESS;
    });
    const auto record =
        cuda::time_on_stream(*driver, at_work.stream, -1, {&work}, clock::Clock::best(), quick_settings(8));
    CHECK(record->guard == GuardKind::context_sync);  // Once hidden work was seen, each sample is waited for.
    CHECK(record->gate == GateKind::none);
    CHECK(contains(record->gate_because, "other streams"));
    CHECK_EQUAL(record->table->count(Invalid::hidden_work), 8U);
    CHECK(record->longest_tail_ns > 200000);
  }
  fake_cuda_set_driver_version(13000);
}

// In XLA (xla/pjrt/se_raw_buffer.cc, CopyRawDeviceToHostAndReturnEvent) a copy to the host is scheduled on a
// pool of threads, which enqueues it on a stream for copies, so it may come when the call has returned. An
// event of the context that was recorded at the return is older than the copy. Waiting for the context is
// not.
TEST("once work was seen that another thread enqueued after the return, every sample waits for the context") {
  const EngineAtWork at_work;
  const std::uint64_t copies = fake_cuda_create_stream(at_work.context, 1);
  for (const int every : {1, 2}) {
    CopiedBackLate work(at_work.stream, copies, every);
    fake_cuda_reset_call_counts();
    const auto record = time_it(at_work, work, quick_settings(12));
    CHECK(record->guard == GuardKind::context_sync);
    CHECK(record->gate == GateKind::none);
    CHECK(fake_cuda_call_count("cuCtxSynchronize") >= 12);
    CHECK_EQUAL(record->table->count(Invalid::hidden_work), static_cast<std::size_t>(12 / every));
    CHECK_EQUAL(invalid_in(record->table->column(Quantity::device_span_ns)),
                static_cast<std::size_t>(12 / every));
  }
  CopiedBackLate unguarded(at_work.stream, copies, 1);
  StreamSettings settings = quick_settings(12);
  settings.guard = false;
  CHECK(all_equal(time_it(at_work, unguarded, settings)->table->column(Quantity::device_span_ns), 5000));
}

// Seen on an H100 with JAX 0.11.2: the kernel comes some 30 us after the call has returned.
TEST("a span is refused where the work comes onto the stream after its call has returned") {
  const EngineAtWork at_work;
  LaunchedLate work(at_work.stream);
  StreamSettings settings = quick_settings(8);
  CHECK(contains(message_of([&] { time_it(at_work, work, settings); }), "returns before its work"));
  settings.method = Method::context_span;
  CHECK_EQUAL(time_it(at_work, work, settings)->table->valid(), 8U);
}

// Seen on an H100 beside other processes, whose kernels came between the two events of some looks.
TEST("what comes late in two looks of five is no habit of the call") {
  const EngineAtWork at_work;
  StreamSettings settings = quick_settings(8);
  settings.warm_up_calls = 12;
  LaunchedLate work(at_work.stream, 5);  // the looks begin with the fourth call
  CHECK_EQUAL(time_it(at_work, work, settings)->table->valid(), 8U);
  LaunchedLate mostly_late(at_work.stream, 6);
  CHECK(contains(message_of([&] { time_it(at_work, mostly_late, settings); }), "returns before its work"));
}

TEST("a host that is late once does not cost the gate") {
  const EngineAtWork at_work;
  const std::uint64_t other = fake_cuda_create_stream(at_work.context, 1);
  int calls = 0;
  ScriptedWork work([&] {
    fake_cuda_kernel(at_work.stream, "seen", 5000);
    // What a delay between the stop event and the look at it amounts to, in the second call only.
    return ++calls != 2 || fake_cuda_kernel(other, "delay", 100'000'000) == CUDA_SUCCESS;
  });
  const auto record = time_it(at_work, work, quick_settings(8));
  CHECK(record->gate == GateKind::stream_wait);
  CHECK_EQUAL(record->table->valid(), 8U);
}

TEST("a stream that the work does not run on is detected") {
  const EngineAtWork at_work;
  const std::uint64_t other = fake_cuda_create_stream(at_work.context, 1);
  ScriptedWork work(kernel_of(other, 100'000'000));
  const auto record = time_it(at_work, work, quick_settings(8));
  CHECK_EQUAL(record->table->count(Invalid::hidden_work), 8U);
  CHECK_EQUAL(record->table->valid(), 0U);
}

TEST("samples that are all invalid do not make the search for more calls run away") {
  const EngineAtWork at_work;
  const std::uint64_t other = fake_cuda_create_stream(at_work.context, 1);
  ScriptedWork work(kernel_of(other, 100'000'000));
  StreamSettings settings = quick_settings(8);
  settings.warm_up = loop::WarmUpKind::found;
  settings.calls_per_sample = 0;
  CHECK_EQUAL(time_it(at_work, work, settings)->calls_per_sample, 1U);
}

TEST("with no guard the hidden work is not looked for") {
  const EngineAtWork at_work;
  const std::uint64_t other = fake_cuda_create_stream(at_work.context, 1);
  ScriptedWork work(kernel_of(other, 100'000'000));
  StreamSettings settings = quick_settings(8);
  settings.guard = false;
  const auto record = time_it(at_work, work, settings);
  CHECK(record->guard == GuardKind::none);
  CHECK_EQUAL(record->table->valid(), 8U);
}

TEST_MAIN()
