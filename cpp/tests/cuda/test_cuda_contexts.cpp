// Timing in the right context: events over a whole context, several devices, and code that contexts keep.

#include <atomic>
#include <optional>
#include <thread>

#include "cuda/device/loaded_kernel.hpp"
#include "tests/check.hpp"
#include "tests/cuda/cuda_at_work.hpp"

using namespace fairlap;
using namespace fairlap::test;
using cuda::GateKind;
using cuda::Method;
using cuda::Quantity;
using cuda::StreamSettings;

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

// By cuda.h, a launch fails with more than CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES. That is what a
// block has, 48 KiB, until cuFuncSetAttribute raises it, at most to what a block may have after that: 227 KiB
// on devices of 9.0 (CUDA C++ Programming Guide, technical specifications per compute capability).
TEST("a kernel may use more shared memory than 48 KiB, and no more than the device has") {
  const EngineAtWork at_work;
  const std::string code =
      ".version 6.3\n.target sm_70\n.address_size 64\n.visible .entry work()\n{\n    ret;\n}\n";
  {
    const cuda::OwnStream stream(*at_work.driver, 0);
    const auto launched = [&](unsigned int kib) {
      cuda::LoadedKernel kernel(stream, code, "work", {.shared_bytes = kib << 10U}, {});
      kernel.enter();
      const std::string failure = message_of([&] { kernel.launch(); });
      kernel.leave();
      return failure;
    };
    for (const unsigned int kib : {0U, 48U, 100U, 227U}) CHECK_EQUAL(launched(kib), "");
    CHECK(
        contains(message_of([&] { launched(228); }), "cuFuncSetAttribute failed: CUDA_ERROR_INVALID_VALUE"));
  }
  CHECK_EQUAL(outstanding_objects(), 0);
}

TEST_MAIN()
