#include <string>
#include <vector>

#include "cuda/activity/call_recorder.hpp"
#include "fakes/fake_cupti.h"
#include "tests/check.hpp"
#include "tests/cuda/cuda_at_work.hpp"
#include "tests/refuses.hpp"

using namespace fairlap;
using namespace fairlap::test;
using cuda::CallRecorder;
using cuda::RecordedCall;

namespace {

struct Recorded : EngineAtWork {
  Recorded() { fake_cupti_reset(); }
  const cuda::Cupti& cupti = cuda::Cupti::of_this_process({});
};

std::vector<std::string> names_of(const RecordedCall& call) {
  std::vector<std::string> names;
  for (const cuda::Activity& activity : call.activities) names.push_back(cuda::readable_name(activity));
  return names;
}

double length_ns(const cuda::Activity& activity) {
  return static_cast<double>(activity.end_ns - activity.start_ns);
}

}  // namespace

TEST("each call has its own kernels and copies, with their exact lengths, in order") {
  const Recorded at_work;
  CallRecorder recorder(*at_work.driver, at_work.cupti, 0);
  for (int number = 1; number <= 3; ++number) {
    recorder.begin();
    fake_cuda_copy(at_work.stream, 1, 1024, 200);
    fake_cuda_kernel(at_work.stream, "one", 500 * number);
    fake_cuda_kernel(at_work.stream, "two", 1500);
    fake_cuda_advance_host(10'000);
    const RecordedCall call = recorder.end();
    CHECK(call.is_complete);
    CHECK(names_of(call) == std::vector<std::string>({"memcpy HtoD", "one", "two"}));
    CHECK_EQUAL(length_ns(call.activities[0]), 200.0);
    CHECK_EQUAL(length_ns(call.activities[1]), 500.0 * number);
    CHECK_EQUAL(length_ns(call.activities[2]), 1500.0);
    CHECK_EQUAL(call.end_ns - call.begin_ns, 10'000U);
    CHECK(call.activities[0].start_ns >= call.begin_ns);
  }
}

TEST("work of every stream of the device belongs to the call, also where it outlives it") {
  const Recorded at_work;
  const std::uint64_t other = fake_cuda_create_stream(at_work.context, 1);
  CallRecorder recorder(*at_work.driver, at_work.cupti, 0);
  recorder.begin();
  fake_cuda_kernel(at_work.stream, "one", 500);
  fake_cuda_kernel(other, "late", 90'000);
  CHECK(names_of(recorder.end()) == std::vector<std::string>({"one", "late"}));
  recorder.begin();
  CHECK(recorder.end().activities.empty());
}

TEST("work from before the first call belongs to none") {
  const Recorded at_work;
  fake_cuda_kernel(at_work.stream, "before", 5000);
  CallRecorder recorder(*at_work.driver, at_work.cupti, 0);
  recorder.begin();
  fake_cuda_kernel(at_work.stream, "one", 500);
  CHECK(names_of(recorder.end()) == std::vector<std::string>({"one"}));
}

TEST("a call of which records were lost is marked, and the next is not") {
  const Recorded at_work;
  CallRecorder recorder(*at_work.driver, at_work.cupti, 0);
  fake_cupti_drop_records(1);
  for (const bool is_complete : {false, true}) {
    recorder.begin();
    fake_cuda_kernel(at_work.stream, "one", 500);
    fake_cuda_kernel(at_work.stream, "two", 500);
    CHECK_EQUAL(recorder.end().is_complete, is_complete);
  }
}

TEST("names of kernels are those of their source, and of copies and fills their kind") {
  const std::string mangled = "_ZN3one3twoILi4EEEvPfi";
  const std::string plain = "ampere_sgemm_128x64_tn";
  CHECK_EQUAL(cuda::readable_name({.name = &mangled}), "void one::two<4>(float*, int)");
  CHECK_EQUAL(cuda::readable_name({.name = &plain}), plain);
  CHECK_EQUAL(cuda::readable_name({.kind = cuda::ActivityKind::fill}), "memset");
  CHECK_EQUAL(cuda::readable_name({.kind = cuda::ActivityKind::copy, .copy_kind = 8}), "memcpy DtoD");
  CHECK_EQUAL(cuda::readable_name({.kind = cuda::ActivityKind::copy, .copy_kind = 99}), "memcpy");
}

TEST("where another profiler holds CUPTI there is no recorder, and afterwards CUPTI is free") {
  const Recorded at_work;
  fake_cupti_set_held_by_another(1);
  CHECK(refuses<cuda::Unavailable>([&] { CallRecorder(*at_work.driver, at_work.cupti, 0); }));
  fake_cupti_set_held_by_another(0);
  {
    const CallRecorder recorder(*at_work.driver, at_work.cupti, 0);
  }
  CHECK_EQUAL(fake_cupti_outstanding("subscribers"), 0);
  CHECK_EQUAL(fake_cupti_outstanding("enabled_kinds"), 0);
  CHECK_EQUAL(outstanding_objects(), 0);
}

TEST_MAIN()
