#include "tests/check.hpp"
#include "tests/cuda/cuda_at_work.hpp"

// A call captured once as a graph and replayed, and several works taken in turn.

using namespace fairlap;
using namespace fairlap::test;
using cuda::Quantity;
using cuda::StreamSettings;
using loop::StopReason;

TEST("a graph is captured once and its replays are timed") {
  const EngineAtWork at_work;
  ScriptedWork work([&] {
    fake_cuda_kernel(at_work.stream, "a", 2000);
    return fake_cuda_kernel(at_work.stream, "b", 3000) == CUDA_SUCCESS;
  });
  StreamSettings settings = quick_settings(40);
  settings.graph = true;
  const auto record = time_it(at_work, work, settings);
  CHECK_EQUAL(record->graph_nodes, 2U);
  CHECK(all_equal(record->table->column(Quantity::device_span_ns), 5000));
  CHECK_EQUAL(work.calls, 4);  // three first calls, one capture
  CHECK_EQUAL(work.alive, 0);
  CHECK_EQUAL(outstanding_objects(), 0);
}

TEST("a call that cannot be captured is explained, and its stream is left usable") {
  const EngineAtWork at_work;
  StreamSettings settings = quick_settings(5);
  settings.graph = true;
  ScriptedWork* self = nullptr;
  ScriptedWork synchronising([&] {
    fake_cuda_kernel(at_work.stream, "a", 2000);
    static_cast<void>(cuStreamSynchronize(at_work.s()));
    return true;
  });
  self = &synchronising;
  CHECK(contains(message_of([&] { time_it(at_work, *self, settings); }), "synchron"));
  ScriptedWork elsewhere(kernel_of(fake_cuda_create_stream(at_work.context, 1), 2000));
  CHECK(contains(message_of([&] { time_it(at_work, elsewhere, settings); }), "no work on"));
  ScriptedWork on_default(kernel_of(0, 2000));
  CHECK(contains(message_of([&] {
                   cuda::time_on_stream(*at_work.driver, 0, -1, {&on_default}, clock::Clock::best(),
                                        settings);
                 }),
                 "default stream cannot be captured"));
  ScriptedWork fine(kernel_of(at_work.stream, 2000));
  CHECK(all_equal(time_it(at_work, fine, settings)->table->column(Quantity::device_span_ns), 2000));
  CHECK_EQUAL(outstanding_objects(), 0);
}

TEST("a work that raises while it is captured ends the run and the capture") {
  const EngineAtWork at_work;
  ScriptedWork* self = nullptr;
  ScriptedWork work([&] {
    fake_cuda_kernel(at_work.stream, "a", 2000);
    return self->calls < 4;
  });
  self = &work;
  StreamSettings settings = quick_settings(5);
  settings.graph = true;
  CHECK(time_it(at_work, work, settings)->stopped_by == StopReason::raised);
  int status = 1;
  CHECK_EQUAL(cuStreamIsCapturing(at_work.s(), &status), CUDA_SUCCESS);
  CHECK_EQUAL(status, 0);
  CHECK_EQUAL(outstanding_objects(), 0);
}

TEST("several works are called in turn") {
  const EngineAtWork at_work;
  ScriptedWork first(kernel_of(at_work.stream, 1000));
  ScriptedWork second(kernel_of(at_work.stream, 3000));
  for (const bool graph : {false, true}) {
    StreamSettings settings = quick_settings(10);
    settings.calls_per_sample = 2;
    settings.graph = graph;
    const auto record = cuda::time_on_stream(*at_work.driver, at_work.stream, -1, {&first, &second},
                                             clock::Clock::best(), settings);
    CHECK(all_equal(record->table->column(Quantity::device_span_ns), 2000));
  }
  CHECK_EQUAL(first.alive + second.alive, 0);
}

TEST_MAIN()
