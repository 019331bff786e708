#include <algorithm>
#include <chrono>

#include "cuda/sampling/cold_cache.hpp"
#include "tests/check.hpp"
#include "tests/cuda/cuda_at_work.hpp"

using namespace fairlap;
using namespace fairlap::test;
using cuda::GateKind;
using cuda::GuardKind;
using cuda::Method;
using cuda::Quantity;
using cuda::StreamSettings;
using loop::StopReason;

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

TEST("each sample has the time at which the host began it") {
  const EngineAtWork at_work;
  const clock::Clock& on_clock = clock::Clock::best();
  const auto now_ns = [&] { return on_clock.ns_of(on_clock.finish() - on_clock.calibration().origin.ticks); };
  ScriptedWork work(kernel_of(at_work.stream, 2560));
  const double before_ns = now_ns();
  const auto record = time_it(at_work, work, quick_settings(50));
  const auto started_ns = record->table->started_ns();
  CHECK_EQUAL(started_ns.size(), 50U);
  CHECK(started_ns.front() > before_ns);
  CHECK(std::is_sorted(started_ns.begin(), started_ns.end()));
  CHECK(started_ns.back() < now_ns());
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

TEST("the flush writes twice the cache before each sample") {
  const EngineAtWork at_work;
  ScriptedWork work(kernel_of(at_work.stream, 4000));
  StreamSettings settings = quick_settings(10);
  settings.flush = true;
  fake_cuda_reset_call_counts();
  auto record = time_it(at_work, work, settings);
  // Ten samples and three of the four calls before them; one only looks for late work.
  CHECK_EQUAL(fake_cuda_call_count("cuMemsetD32Async"), 13);
  CHECK_EQUAL(fake_cuda_call_count("cuCtxResetPersistingL2Cache"), 0);
  CHECK(!record->persisting_lines_reset);
  CHECK_EQUAL(record->flush_bytes, 2 * record->cache_bytes);
  CHECK_EQUAL(record->calls_per_sample, 1U);
  CHECK(all_equal(record->table->column(Quantity::device_span_ns), 4000));
  CHECK_EQUAL(outstanding_objects(), 0);
}

// CUDA's documentation of cuCtxResetPersistingL2Cache: it takes effect on function return. The programming
// guide (L2 cache control): lines that persist are not evicted by ordinary accesses, such as those of a
// flush.
TEST(
    "lines that persist are reset before each cold sample, while nothing runs that could make them persist") {
  constexpr std::uint64_t kSetAside = 8 << 20;
  for (const bool flush : {true, false}) {
    for (const Method method : {Method::device_span, Method::context_span}) {
      const EngineAtWork at_work;
      fake_cuda_set_aside_for_persisting(0, kSetAside);
      ScriptedWork one(kernel_of(at_work.stream, 40'000));
      ScriptedWork other(kernel_of(at_work.stream, 40'000));
      StreamSettings settings = quick_settings(10);
      settings.method = method;
      settings.flush = flush;
      settings.calls_per_sample = 0;
      fake_cuda_reset_call_counts();
      const auto record = cuda::time_on_stream(*at_work.driver, at_work.stream, -1, {&one, &other},
                                               clock::Clock::best(), settings);
      CHECK(record->persisting_lines_reset);
      CHECK(fake_cuda_call_count("cuCtxResetPersistingL2Cache") >= 10);
      CHECK_EQUAL(fake_cuda_resets_while_busy(), 0);
      CHECK_EQUAL(record->calls_per_sample, 1U);
      CHECK(all_equal(record->table->column(cuda::headline_of(method)), 40'000));
      CHECK_EQUAL(outstanding_objects(), 0);
    }
  }
}

TEST("a cache is made cold for the host's clock by as much as for events, on an idle device") {
  const EngineAtWork at_work;
  fake_cuda_reset_call_counts();
  {
    cuda::ColdCache cache(*at_work.driver, 0);
    cache.make_cold();
    CHECK_EQUAL(cache.flush_bytes(), 2 * cache.cache_bytes());
    CHECK_EQUAL(fake_cuda_call_count("cuMemsetD32Async"), 1);
    CHECK_EQUAL(fake_cuda_call_count("cuCtxResetPersistingL2Cache"), 0);
    CHECK(!cache.resets_persisting());
    CHECK_EQUAL(fake_cuda_pending_work(0), 0);
    fake_cuda_set_aside_for_persisting(0, 8 << 20);  // by a later call
    cache.make_cold();
    CHECK_EQUAL(fake_cuda_call_count("cuCtxResetPersistingL2Cache"), 1);
    CHECK_EQUAL(fake_cuda_resets_while_busy(), 0);
    CHECK(cache.resets_persisting());
  }
  CHECK_EQUAL(outstanding_objects(), 0);
}

TEST("a part of the cache that the first call sets aside is found") {
  const EngineAtWork at_work;
  ScriptedWork work([&] {
    fake_cuda_set_aside_for_persisting(0, 8 << 20);
    return fake_cuda_kernel(at_work.stream, "work", 4000) == CUDA_SUCCESS;
  });
  StreamSettings settings = quick_settings(10);
  settings.flush = true;
  CHECK(time_it(at_work, work, settings)->persisting_lines_reset);
}

TEST("a warm cache keeps its persisting lines, and several calls in a cold sample are refused beside them") {
  const EngineAtWork at_work;
  fake_cuda_set_aside_for_persisting(0, 8 << 20);
  ScriptedWork one(kernel_of(at_work.stream, 4000));
  ScriptedWork other(kernel_of(at_work.stream, 4000));
  StreamSettings settings = quick_settings(10);
  fake_cuda_reset_call_counts();
  CHECK(!time_it(at_work, one, settings)->persisting_lines_reset);
  CHECK_EQUAL(fake_cuda_call_count("cuCtxResetPersistingL2Cache"), 0);
  settings.calls_per_sample = 4;
  CHECK(!message_of([&] {
           return cuda::time_on_stream(*at_work.driver, at_work.stream, -1, {&one, &other},
                                       clock::Clock::best(), settings);
         }).empty());
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
    settings.timeout_s = requested ? 300.0 : 0.3;
    if (requested) work.stop_at = 11;
    const auto begun = std::chrono::steady_clock::now();
    const auto record = time_it(at_work, work, settings);
    CHECK(std::chrono::steady_clock::now() - begun < std::chrono::seconds(120));
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

TEST_MAIN()
