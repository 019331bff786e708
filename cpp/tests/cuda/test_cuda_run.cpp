#include <atomic>
#include <chrono>
#include <cmath>
#include <thread>
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

}  // namespace

TEST("a kernel's span is exact to the tick, however long the host takes to launch it") {
  const EngineAtWork at_work;
  fake_cuda_set_cost("cuLaunchKernel", 3000);
  ScriptedWork work(kernel_of(at_work.stream, 2560));
  const auto record = time_it(at_work, work, quick_settings(50));
  CHECK_EQUAL(record->table->size(), 50U);
  CHECK(record->gate == GateKind::stream_wait);
  CHECK(record->guard == GuardKind::context_event);
  CHECK(all_equal(record->table->column(Quantity::device_span_ns), 2560));
  CHECK(record->stopped_by == StopReason::samples);
  CHECK_EQUAL(work.calls, 54);
  CHECK(!work.entered_wrongly);
  CHECK_EQUAL(work.depth, 0);
  CHECK_EQUAL(work.alive, 0);
  CHECK_EQUAL(outstanding_objects(), 0);
}

TEST("without a gate the launches of a chain of kernels are part of its span") {
  const EngineAtWork at_work;
  fake_cuda_set_cost("cuLaunchKernel", 3000);
  ScriptedWork work([&] {
    for (int kernel = 0; kernel < 10; ++kernel) fake_cuda_kernel(at_work.stream, "tiny", 20);
    return true;
  });
  StreamSettings settings = quick_settings(5);
  settings.gate = GateKind::none;
  CHECK(all_equal(time_it(at_work, work, settings)->table->column(Quantity::device_span_ns), 10 * 3000 + 20));
  settings.gate = GateKind::stream_wait;
  CHECK(all_equal(time_it(at_work, work, settings)->table->column(Quantity::device_span_ns), 200));
  settings.gate = GateKind::spin;
  const auto spun = time_it(at_work, work, settings);
  CHECK(spun->gate == GateKind::spin);
  CHECK(all_equal(spun->table->column(Quantity::device_span_ns), 200));
}

TEST("the default streams of a context can be timed") {
  for (const std::uintptr_t address : {std::uintptr_t{0}, std::uintptr_t{1}, std::uintptr_t{2}}) {
    const EngineAtWork at_work;
    ScriptedWork work(kernel_of(address, 4000));
    const auto record =
        cuda::time_on_stream(*at_work.driver, address, -1, {&work}, clock::Clock::best(), quick_settings(10));
    CHECK(all_equal(record->table->column(Quantity::device_span_ns), 4000));
    CHECK_EQUAL(outstanding_objects(), 0);
  }
}

TEST("earlier work is waited for and is not part of any sample") {
  const EngineAtWork at_work;
  fake_cuda_kernel(at_work.stream, "before", 50'000'000);
  ScriptedWork work(kernel_of(at_work.stream, 1000));
  CHECK(all_equal(time_it(at_work, work, quick_settings(5))->table->column(Quantity::device_span_ns), 1000));
  fake_cuda_kernel(at_work.stream, "endless", 1'000'000'000'000'000);
  StreamSettings settings = quick_settings(5);
  settings.timeout_s = 0.2;
  CHECK(contains(message_of([&] { time_it(at_work, work, settings); }), "busy with earlier work"));
}

TEST("more samples than slots go round the ring and come out in order") {
  const EngineAtWork at_work;
  std::int64_t duration_ns = 1000;
  ScriptedWork work(
      [&] { return fake_cuda_kernel(at_work.stream, "growing", duration_ns += 1000) == CUDA_SUCCESS; });
  StreamSettings settings = quick_settings(100);
  settings.slots = 3;
  const auto record = time_it(at_work, work, settings);
  const auto spans = record->table->column(Quantity::device_span_ns);
  for (std::size_t sample = 1; sample < spans.size(); ++sample)
    CHECK_NEAR(spans[sample] - spans[sample - 1], 1000, 0.1);
}

TEST("events are made ahead of the samples, none for each") {
  const EngineAtWork at_work;
  ScriptedWork work(kernel_of(at_work.stream, 1000));
  time_it(at_work, work, quick_settings(10));
  const auto few = fake_cuda_call_count("cuEventCreate");
  fake_cuda_reset_call_counts();
  time_it(at_work, work, quick_settings(1000));
  CHECK_EQUAL(fake_cuda_call_count("cuEventCreate"), few);
  CHECK_EQUAL(fake_cuda_call_count("cuMemHostAlloc"), 3);  // two gates and the timer's readings
}

TEST("short kernels are taken many at a time until the event quantum is a small share") {
  const EngineAtWork at_work;
  fake_cuda_set_event_tick(512);
  ScriptedWork work(kernel_of(at_work.stream, 640));
  StreamSettings settings = quick_settings(20);
  settings.calls_per_sample = 0;
  settings.warm_up = loop::WarmUpKind::found;
  const auto record = time_it(at_work, work, settings);
  CHECK_NEAR(record->floor.event_quantum_ns, 512, 0.1);
  CHECK(record->calls_per_sample * 640 >= 51200);
  CHECK(record->calls_per_sample <= 160U);
  const auto spans = record->table->column(Quantity::device_span_ns);
  for (const double span : spans) CHECK_NEAR(span, 640, 6.4);
}

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
  const EngineAtWork at_work;
  ScriptedWork* self = nullptr;
  ScriptedWork work([&] {
    fake_cuda_kernel(at_work.stream, "work", 5000);
    return self->calls != 10 || cuStreamSynchronize(at_work.s()) == CUDA_SUCCESS;
  });
  self = &work;
  StreamSettings settings = quick_settings(20);
  settings.gate_timeout_s = 0.05;
  const auto record = time_it(at_work, work, settings);
  CHECK_EQUAL(record->table->size(), 20U);
  CHECK_EQUAL(record->table->count(Invalid::gate_timed_out), 1U);
  CHECK_EQUAL(invalid_in(record->table->column(Quantity::device_span_ns)), 1U);
  CHECK(record->stopped_by == StopReason::samples);
}

TEST("a gate that times out while sampling halves the calls per sample and drops no sample silently") {
  const EngineAtWork at_work;
  ScriptedWork* self = nullptr;
  ScriptedWork work([&] {
    fake_cuda_kernel(at_work.stream, "work", 5000);
    return self->calls != 100 || cuStreamSynchronize(at_work.s()) == CUDA_SUCCESS;
  });
  self = &work;
  StreamSettings settings = quick_settings(30);
  settings.calls_per_sample = 8;
  settings.gate_timeout_s = 0.05;
  const auto record = time_it(at_work, work, settings);
  CHECK_EQUAL(record->calls_per_sample, 4U);
  CHECK_EQUAL(record->halvings, 1U);
  CHECK_EQUAL(record->table->size(), 30U);
  const std::size_t invalid = invalid_in(record->table->column(Quantity::device_span_ns));
  CHECK_EQUAL(invalid, record->table->count(Invalid::gate_timed_out) +
                           record->table->count(Invalid::calls_were_reduced));
  CHECK(invalid > 5 && invalid < 20);
  CHECK_EQUAL(record->table->valid(), 30U - invalid);
}

TEST("a call that always waits once sampling has begun ends the run with its reason") {
  const EngineAtWork at_work;
  ScriptedWork* self = nullptr;
  ScriptedWork work([&] {
    fake_cuda_kernel(at_work.stream, "work", 5000);
    return self->calls < 10 || cuStreamSynchronize(at_work.s()) == CUDA_SUCCESS;
  });
  self = &work;
  StreamSettings settings = quick_settings(50);
  settings.gate_timeout_s = 0.05;
  const auto record = time_it(at_work, work, settings);
  CHECK(record->stopped_by == StopReason::gate);
  CHECK(contains(record->error, "gate='none'"));
  CHECK_EQUAL(record->table->valid(), 5U);
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

TEST("a context-wide event times work on streams that were not handed over") {
  const EngineAtWork at_work;
  const std::uint64_t one = fake_cuda_create_stream(at_work.context, 1);
  const std::uint64_t two = fake_cuda_create_stream(at_work.context, 1);
  ScriptedWork work([&] {
    fake_cuda_kernel(one, "a", 3000);
    return fake_cuda_kernel(two, "b", 7000) == CUDA_SUCCESS;
  });
  StreamSettings settings = quick_settings(20);
  settings.method = Method::context_span;
  const auto record =
      cuda::time_on_stream(*at_work.driver, std::nullopt, 0, {&work}, clock::Clock::best(), settings);
  CHECK(all_equal(record->table->column(Quantity::context_span_ns), 7000));
  CHECK(record->gate == GateKind::none);
  CHECK_EQUAL(record->stream, "every stream of the context");
  CHECK_EQUAL(outstanding_objects(), 0);
}

TEST("context-wide events that a driver lacks are refused with the release that has them") {
  const EngineAtWork at_work;
  fake_cuda_set_driver_version(12040);
  const auto driver = open_fake_driver();
  ScriptedWork work(kernel_of(at_work.stream, 3000));
  StreamSettings settings = quick_settings(5);
  settings.method = Method::context_span;
  const std::string message = message_of(
      [&] { cuda::time_on_stream(*driver, at_work.stream, -1, {&work}, clock::Clock::best(), settings); });
  CHECK(contains(message, "CUDA 12.5"));
  CHECK(contains(message, "method="));
  CHECK_EQUAL(work.calls, 0);
  fake_cuda_set_driver_version(13000);
}

TEST(
    "the flush writes twice the cache before each sample and resets persisting lines where there can be "
    "any") {
  const EngineAtWork at_work;
  ScriptedWork work(kernel_of(at_work.stream, 4000));
  StreamSettings settings = quick_settings(10);
  settings.flush = true;
  fake_cuda_reset_call_counts();
  auto record = time_it(at_work, work, settings);
  const int flushed =
      13;  // ten samples and three of the four calls before them; one only looks for late work
  CHECK_EQUAL(fake_cuda_call_count("cuMemsetD32Async"), flushed);
  CHECK_EQUAL(fake_cuda_call_count("cuCtxResetPersistingL2Cache"),
              record->persisting_lines_reset ? flushed : 0);
  CHECK(record->flush_bytes > 0);
  CHECK_EQUAL(record->calls_per_sample, 1U);
  CHECK(all_equal(record->table->column(Quantity::device_span_ns), 4000));
  CHECK_EQUAL(outstanding_objects(), 0);
}

TEST("a work that raises keeps the samples before it") {
  const EngineAtWork at_work;
  ScriptedWork* self = nullptr;
  ScriptedWork work([&] {
    fake_cuda_kernel(at_work.stream, "work", 1500);
    return self->calls < 20;
  });
  self = &work;
  const auto record = time_it(at_work, work, quick_settings(50));
  CHECK(record->stopped_by == StopReason::raised);
  CHECK_EQUAL(record->table->size(), 15U);
  CHECK(all_equal(record->table->column(Quantity::device_span_ns), 1500));
  CHECK_EQUAL(outstanding_objects(), 0);
}

TEST("a request to stop ends the run after the sample it came in") {
  const EngineAtWork at_work;
  ScriptedWork work(kernel_of(at_work.stream, 1500));
  work.stop_at = 20;
  const auto record = time_it(at_work, work, quick_settings(50));
  CHECK(record->stopped_by == StopReason::interrupt);
  CHECK_EQUAL(record->table->size(), 16U);
}

TEST("a device that does not answer ends the run in time, and so does a request to stop") {
  for (const bool requested : {false, true}) {
    const EngineAtWork at_work;
    ScriptedWork* self = nullptr;
    ScriptedWork work([&] {
      const std::int64_t forever_ns = 1'000'000'000'000'000;
      return fake_cuda_kernel(at_work.stream, "work", self->calls < 10 ? 1500 : forever_ns) == CUDA_SUCCESS;
    });
    self = &work;
    StreamSettings settings = quick_settings(50);
    settings.timeout_s = requested ? 30.0 : 0.3;
    if (requested) work.stop_at = 11;
    const auto begun = std::chrono::steady_clock::now();
    const auto record = time_it(at_work, work, settings);
    CHECK(std::chrono::steady_clock::now() - begun < std::chrono::seconds(5));
    CHECK(record->stopped_by == (requested ? StopReason::interrupt : StopReason::timeout));
    CHECK_EQUAL(record->table->size(), 5U);
    CHECK(all_equal(record->table->column(Quantity::device_span_ns), 1500));
    if (!requested) CHECK(contains(record->error, "did not finish"));
  }
}

TEST("a run ends by time, and when the interval is narrow enough") {
  const EngineAtWork at_work;
  ScriptedWork work(kernel_of(at_work.stream, 1500));
  StreamSettings settings = quick_settings(0);
  settings.stop.seconds = 0.05;
  auto record = time_it(at_work, work, settings);
  CHECK(record->stopped_by == StopReason::seconds || record->stopped_by == StopReason::full);
  CHECK(record->table->valid() > 10);
  settings.stop.seconds = 30;
  settings.stop.target_half_width = 0.05;
  record = time_it(at_work, work, settings);
  CHECK(record->stopped_by == StopReason::target);
  CHECK(record->table->size() >= 40 && record->table->size() <= 44);
}

TEST("a completion is waited for after the gate is open") {
  const EngineAtWork at_work;
  ScriptedWork work(kernel_of(at_work.stream, 1500),
                    [&] { return cuStreamSynchronize(at_work.s()) == CUDA_SUCCESS; });
  const auto record = time_it(at_work, work, quick_settings(10));
  CHECK(record->gate == GateKind::stream_wait);
  CHECK(all_equal(record->table->column(Quantity::device_span_ns), 1500));
}

TEST("issuing alone touches no event and no gate") {
  const EngineAtWork at_work;
  ScriptedWork work(kernel_of(at_work.stream, 1500));
  StreamSettings settings = quick_settings(10);
  settings.method = Method::host_issue;
  const auto record = time_it(at_work, work, settings);
  CHECK_EQUAL(record->table->valid(), 10U);
  CHECK(!record->table->has(Quantity::device_span_ns));
  CHECK_EQUAL(fake_cuda_call_count("cuEventElapsedTime"), 0);
}

TEST("the work sees the context that its caller had chosen, and the caller gets it back") {
  const EngineAtWork at_work;
  const std::uint64_t chosen = fake_cuda_create_context(0);
  fake_cuda_make_current(chosen);
  std::uint64_t seen = 0;
  ScriptedWork work([&] {
    seen = fake_cuda_current_context();
    return fake_cuda_kernel(at_work.stream, "work", 1000) == CUDA_SUCCESS;
  });
  const auto record = time_it(at_work, work, quick_settings(5));
  CHECK_EQUAL(seen, chosen);
  CHECK_EQUAL(fake_cuda_current_context(), chosen);
  CHECK(all_equal(record->table->column(Quantity::device_span_ns), 1000));
}

TEST("streams of several devices and contexts are timed each in its own") {
  const EngineAtWork at_work;
  fake_cuda_set_device_count(2);
  const std::uint64_t second = fake_cuda_activate_primary_context(1);
  const std::uint64_t made = fake_cuda_create_context(1);
  fake_cuda_make_current(at_work.context);
  for (const std::uint64_t context : {second, made}) {
    const std::uint64_t stream = fake_cuda_create_stream(context, 1);
    ScriptedWork work(kernel_of(stream, 1700));
    for (const Method method : {Method::device_span, Method::context_span}) {
      StreamSettings settings = quick_settings(5);
      settings.method = method;
      const auto record =
          cuda::time_on_stream(*at_work.driver, stream, 1, {&work}, clock::Clock::best(), settings);
      CHECK_EQUAL(record->device, 1);
      CHECK(all_equal(record->table->column(cuda::headline_of(method)), 1700));
      CHECK_EQUAL(fake_cuda_current_context(), at_work.context);
    }
  }
  CHECK_EQUAL(outstanding_objects(), 0);
}

TEST("a thread without a current context can time, and is left without one") {
  const EngineAtWork at_work;
  fake_cuda_make_current(0);
  const std::optional<std::uintptr_t> hidden;
  for (const bool context_events : {true, false}) {
    if (!context_events) fake_cuda_set_driver_version(12040);
    const auto driver = open_fake_driver();
    ScriptedWork work(kernel_of(at_work.stream, 1700));
    for (const Method method : {Method::device_span, Method::context_span}) {
      if (method == Method::context_span && !context_events) continue;
      StreamSettings settings = quick_settings(6);
      settings.method = method;
      const auto stream = method == Method::context_span ? hidden : std::optional(at_work.stream);
      const auto record = cuda::time_on_stream(*driver, stream, 0, {&work}, clock::Clock::best(), settings);
      CHECK_EQUAL(record->error, std::string());
      CHECK(all_equal(record->table->column(cuda::headline_of(method)), 1700));
      CHECK_EQUAL(fake_cuda_current_context(), 0U);
    }
  }
  fake_cuda_set_driver_version(13000);
}

TEST("without a guard a capture of another thread in the same context goes on, with one it is ended") {
  for (const bool guard : {false, true}) {
    const EngineAtWork at_work;
    const std::uint64_t captured = fake_cuda_create_stream(at_work.context, 1);
    std::atomic<bool> begun = false;
    std::atomic<bool> timed = false;
    CUresult ended = CUDA_ERROR_UNKNOWN;
    std::thread capturing([&] {
      fake_cuda_make_current(at_work.context);
      CHECK_EQUAL(cuStreamBeginCapture_v2(as_stream(captured), 0), CUDA_SUCCESS);  // the global mode
      fake_cuda_kernel(captured, "captured", 100);
      begun = true;
      while (!timed) std::this_thread::yield();
      CUgraph graph = nullptr;
      ended = cuStreamEndCapture(as_stream(captured), &graph);
      if (graph != nullptr) cuGraphDestroy(graph);
    });
    while (!begun) std::this_thread::yield();
    StreamSettings settings = quick_settings(8);
    settings.guard = guard;
    ScriptedWork work(kernel_of(at_work.stream, 1700));
    std::size_t valid = 0;
    const std::string refusal = message_of([&] { valid = time_it(at_work, work, settings)->table->valid(); });
    timed = true;
    capturing.join();
    CHECK_EQUAL(valid, guard ? 0U : 8U);
    CHECK_EQUAL(refusal.empty(), !guard);
    CHECK_EQUAL(ended, guard ? CUDA_ERROR_STREAM_CAPTURE_INVALIDATED : CUDA_SUCCESS);
    CHECK_EQUAL(outstanding_objects(), 0);
  }
}

TEST("device code is assembled once for each context, and again for one that got an old one's address") {
  const EngineAtWork at_work;
  ScriptedWork work(kernel_of(at_work.stream, 1000));
  for (int run = 0; run < 3; ++run) time_it(at_work, work, quick_settings(3));
  CHECK_EQUAL(fake_cuda_call_count("cuModuleLoadData"), 1);
  const std::uint64_t other = fake_cuda_create_context(0);
  const std::uint64_t stream = fake_cuda_create_stream(other, 1);
  ScriptedWork there(kernel_of(stream, 1000));
  for (int run = 0; run < 2; ++run)
    cuda::time_on_stream(*at_work.driver, stream, -1, {&there}, clock::Clock::best(), quick_settings(3));
  CHECK_EQUAL(fake_cuda_call_count("cuModuleLoadData"), 2);
  CHECK_EQUAL(fake_cuda_outstanding("modules"), 2);
  cuda::KeptDeviceCode kept;
  int loads = 0;
  const auto load = [&] {
    ++loads;
    return cuda::DeviceFunctions{};
  };
  for (const unsigned long long id : {7ULL, 7ULL, 8ULL}) kept.of(at_work.c(), id, load);
  CHECK_EQUAL(loads, 2);
}

TEST("a driver that cannot distinguish contexts has the device code unloaded after each call") {
  const EngineAtWork at_work;
  fake_cuda_set_driver_version(11080);
  const auto driver = open_fake_driver();
  ScriptedWork work(kernel_of(at_work.stream, 1000));
  for (int run = 0; run < 2; ++run)
    cuda::time_on_stream(*driver, at_work.stream, -1, {&work}, clock::Clock::best(), quick_settings(3));
  CHECK_EQUAL(fake_cuda_call_count("cuModuleLoadData"), 2);
  CHECK_EQUAL(fake_cuda_outstanding("modules"), 0);
  fake_cuda_set_driver_version(13000);
}

TEST("without a compiler of device code context-wide events are tried with fills, and time correctly") {
  const EngineAtWork at_work;
  fake_cuda_set_jit(0);
  ScriptedWork work(kernel_of(at_work.stream, 7000));
  StreamSettings settings = quick_settings(5);
  settings.method = Method::context_span;
  const auto record =
      cuda::time_on_stream(*at_work.driver, std::nullopt, 0, {&work}, clock::Clock::best(), settings);
  CHECK(all_equal(record->table->column(Quantity::context_span_ns), 7000));
  CHECK(contains(record->kernels_absent_because, "JIT_COMPILER_NOT_FOUND"));
  CHECK_EQUAL(outstanding_objects(), 0);
}

TEST("context-wide events with the time of one of several streams are refused, whichever it is") {
  for (const int whose : {FAKE_CUDA_OF_FIRST_TO_END, FAKE_CUDA_OF_FIRST_MADE, FAKE_CUDA_OF_LAST_MADE}) {
    for (const int jit : {1, 0}) {
      const EngineAtWork at_work;
      fake_cuda_set_jit(jit);
      fake_cuda_set_context_events_of(whose);
      ScriptedWork work(kernel_of(at_work.stream, 7000));
      StreamSettings settings = quick_settings(5);
      settings.method = Method::context_span;
      const std::string message = message_of([&] { time_it(at_work, work, settings); });
      CHECK(contains(message, "do not time correctly"));
      CHECK_EQUAL(work.calls, 0);
    }
  }
}

TEST_MAIN()
