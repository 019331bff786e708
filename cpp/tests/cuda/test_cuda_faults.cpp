#include <cmath>
#include <string>
#include <vector>

#include "cuda/device/device_report.hpp"
#include "tests/check.hpp"
#include "tests/cuda/cuda_at_work.hpp"

// Every function of the driver that the engine calls fails on its n-th call, for every n and every way to
// time. After any failure: no crash, no deadlock, no leak, and an error that names the function.

using namespace fairlap;
using namespace fairlap::test;
using cuda::Method;
using cuda::StreamSettings;
using loop::StopReason;

namespace {

const std::vector<const char*>& functions() {
  static const std::vector<const char*> names = {
#define FAIRLAP_NAME(member, exported, release, required) #exported,
      FAIRLAP_DRIVER_FUNCTIONS(FAIRLAP_NAME)
#undef FAIRLAP_NAME
  };
  return names;
}

struct Case {
  const char* name;
  StreamSettings settings;
};

std::vector<Case> cases() {
  StreamSettings plain = quick_settings(6);
  StreamSettings spinning = plain;
  spinning.gate = cuda::GateKind::spin;
  StreamSettings ungated = plain;
  ungated.gate = cuda::GateKind::none;
  StreamSettings flushed = plain;
  flushed.flush = true;
  StreamSettings graph = plain;
  graph.graph = true;
  StreamSettings context = plain;
  context.method = Method::context_span;
  StreamSettings traced = plain;
  traced.method = Method::kernel_sum;
  StreamSettings issue = plain;
  issue.method = Method::host_issue;
  return {{"plain", plain}, {"spin", spinning},   {"ungated", ungated}, {"flush", flushed},
          {"graph", graph}, {"context", context}, {"kernels", traced},  {"issue", issue}};
}

struct Outcome {
  bool failed = false;
  std::string message;
  std::size_t samples = 0;
  std::size_t valid = 0;
};

Outcome attempt(const EngineAtWork& at_work, const StreamSettings& settings) {
  // The work is the user's: it must not see the fault that is meant for the engine.
  ScriptedWork work(kernel_of(at_work.stream, 1500));
  try {
    const auto record = time_it(at_work, work, settings);
    return {record->stopped_by == StopReason::cuda_error || record->stopped_by == StopReason::raised,
            record->error, record->table->size(), record->table->valid()};
  } catch (const std::exception& error) {
    return {true, error.what(), 0, 0};
  }
}

}  // namespace

TEST("whichever function fails, and whenever, the error names it and nothing is left behind") {
  for (const Case& tried : cases()) {
    std::size_t failures = 0;
    for (const char* function : functions()) {
      for (std::int64_t nth = 1; nth < 400; nth = nth < 12 ? nth + 1 : nth * 2) {
        const EngineAtWork at_work;
        fake_cuda_reset_call_counts();
        fake_cuda_fail(function, nth, CUDA_ERROR_UNKNOWN);
        const Outcome outcome = attempt(at_work, tried.settings);
        const bool was_called = fake_cuda_call_count(function) >= nth;
        fake_cuda_forget_faults();
        if (outcome.failed) {
          ++failures;
          if (!contains(outcome.message, "CUDA_ERROR_UNKNOWN") && !contains(outcome.message, "error 999")) {
            fail(__FILE__, __LINE__, std::string(tried.name) + ", " + function + ": " + outcome.message);
          }
        } else if (outcome.samples != 6) {
          fail(__FILE__, __LINE__,
               std::string(tried.name) + ", " + function + ": samples are missing without an error");
        }
        int status = 0;
        CHECK_EQUAL(cuStreamIsCapturing(at_work.s(), &status), CUDA_SUCCESS);
        // A capture that could not be ended is the one thing that cannot be put right.
        if (std::string(function) != "cuStreamEndCapture") CHECK_EQUAL(status, 0);
        CHECK_EQUAL(fake_cuda_current_context(), at_work.context);
        const bool pops = std::string(function) == "cuCtxPopCurrent_v2";  // and did not, so it stays
        if (!pops) CHECK_EQUAL(fake_cuda_outstanding("pushed_contexts"), 0);
        const bool frees = contains(function, "Destroy") || contains(function, "Free") ||
                           contains(function, "Unload") || contains(function, "Release") ||
                           contains(function, "PushCurrent") || contains(function, "PopCurrent");
        if (!frees && outstanding_objects() != 0) {
          fail(__FILE__, __LINE__,
               std::string(tried.name) + ", " + function + " at call " + std::to_string(nth) + " leaks");
        }
        if (!was_called) break;
      }
    }
    CHECK(failures > 20);
  }
}

TEST("the samples taken before an error are kept") {
  const EngineAtWork at_work;
  ScriptedWork* self = nullptr;
  ScriptedWork work([&] {
    if (self->calls == 24) fake_cuda_fail("cuEventRecord", 5, CUDA_ERROR_ILLEGAL_ADDRESS);
    return fake_cuda_kernel(at_work.stream, "work", 1500) == CUDA_SUCCESS;
  });
  self = &work;
  const auto record = time_it(at_work, work, quick_settings(50));
  CHECK(record->stopped_by == StopReason::cuda_error);
  CHECK(contains(record->error, "cuEventRecord failed: CUDA_ERROR_ILLEGAL_ADDRESS"));
  CHECK(contains(record->error, "new process"));
  CHECK_EQUAL(record->table->valid(), 21U);
}

TEST("an assertion that fails in a kernel breaks the context too, and the advice is a new process") {
  const EngineAtWork at_work;
  ScriptedWork* self = nullptr;
  ScriptedWork work([&] {
    if (self->calls == 24) fake_cuda_fail("cuEventRecord", 5, CUDA_ERROR_ASSERT);
    return fake_cuda_kernel(at_work.stream, "work", 1500) == CUDA_SUCCESS;
  });
  self = &work;
  const auto record = time_it(at_work, work, quick_settings(50));
  CHECK(record->stopped_by == StopReason::cuda_error);
  CHECK(contains(record->error, "CUDA_ERROR_ASSERT"));
  CHECK(contains(record->error, "new process"));
}

// Those of which cuda.h of CUDA 13 says that the process must be terminated or the context destroyed, and two
// after which nothing is known to work.
TEST("errors after which the documentation asks for a new process break the context, and others do not") {
  for (const int code : {226, 700, 702, 710, 714, 715, 716, 717, 718, 719, 721, 810, 911, 214, 999})
    CHECK(cuda::breaks_the_context(code));
  for (const int code : {0, 1, 2, 201, 400, 600, 701, 709, 713, 720, 800, 801, 809, 900, 910, 912})
    CHECK(!cuda::breaks_the_context(code));
}

TEST("a context that breaks in the middle of a run ends it with the samples before") {
  const EngineAtWork at_work;
  ScriptedWork* self = nullptr;
  ScriptedWork work([&] {
    if (self->calls == 24) fake_cuda_poison(CUDA_ERROR_ILLEGAL_ADDRESS);
    fake_cuda_kernel(at_work.stream, "work", 1500);
    return true;
  });
  self = &work;
  const auto record = time_it(at_work, work, quick_settings(50));
  fake_cuda_poison(0);
  CHECK(record->stopped_by == StopReason::cuda_error);
  CHECK(record->table->valid() >= 15);
}

TEST("a gate is left open by every error, so that the stream continues") {
  for (const char* function :
       {"cuEventRecord", "cuCtxRecordEvent", "cuCtxPushCurrent_v2", "cuMemsetD32Async"}) {
    for (std::int64_t nth = 1; nth < 40; ++nth) {
      const EngineAtWork at_work;
      ScriptedWork* self = nullptr;
      ScriptedWork work([&] {
        if (self->calls == 6) fake_cuda_fail(function, nth, CUDA_ERROR_UNKNOWN);
        return fake_cuda_kernel(at_work.stream, "work", 1500) == CUDA_SUCCESS;
      });
      self = &work;
      StreamSettings settings = quick_settings(20);
      settings.flush = true;
      time_it(at_work, work, settings);
      fake_cuda_forget_faults();
      CHECK_EQUAL(cuStreamSynchronize(at_work.s()), CUDA_SUCCESS);
      CHECK_EQUAL(fake_cuda_pending_work(at_work.stream), 0);
    }
  }
}

TEST("a device whose floor cannot be measured has the reason and does not hide the others") {
  const EngineAtWork at_work;
  fake_cuda_set_device_count(2);
  fake_cuda_fail("cuDevicePrimaryCtxRetain", 1, CUDA_ERROR_OUT_OF_MEMORY);
  const auto reports = cuda::report_devices(*at_work.driver, clock::Clock::best());
  CHECK_EQUAL(reports.size(), 2U);
  CHECK(contains(reports[0].floor_absent_because, "CUDA_ERROR_OUT_OF_MEMORY"));
  CHECK(reports[1].floor_absent_because.empty());
  CHECK(reports[1].floor.event_quantum_ns > 0);
  CHECK_EQUAL(outstanding_objects(), 0);
}

TEST("the floor is measured in the step, the costs and the gaps that the device has") {
  const EngineAtWork at_work;
  fake_cuda_set_event_tick(32);
  fake_cuda_set_globaltimer_step(1024);
  fake_cuda_set_event_record_duration(320);
  const auto reports = cuda::report_devices(*at_work.driver, clock::Clock::best());
  CHECK_EQUAL(reports.size(), 1U);
  CHECK_NEAR(reports[0].floor.event_quantum_ns, 32, 0.5);
  CHECK_NEAR(reports[0].floor.timer_step_ns, 1024, 0.5);
  CHECK_NEAR(reports[0].floor.empty_pair_ns, 320, 32.5);
  CHECK(reports[0].floor.record_cost_ns > 0);
  CHECK(reports[0].floor.launch_cost_ns > 0);
  CHECK(reports[0].gate == cuda::GateKind::stream_wait);
}

TEST_MAIN()
