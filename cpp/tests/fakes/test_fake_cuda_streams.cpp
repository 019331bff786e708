#include "tests/check.hpp"
#include "tests/fake_cuda_setup.hpp"

using namespace fairlap::test;

TEST("a kernel lasts what was stated and a synchronise moves the host to its end") {
  const FrameworkAtWork at_work;
  CHECK_EQUAL(fake_cuda_kernel(at_work.stream, "gemm", 10'000), 0);
  CHECK_EQUAL(fake_cuda_now_ns(), 0);
  CHECK_EQUAL(cuStreamQuery(at_work.s()), CUDA_ERROR_NOT_READY);
  CHECK_EQUAL(cuStreamSynchronize(at_work.s()), CUDA_SUCCESS);
  CHECK_EQUAL(fake_cuda_now_ns(), 10'000);
  CHECK_EQUAL(cuStreamQuery(at_work.s()), CUDA_SUCCESS);
}

TEST("work starts at the later of its stream's end and the host's now") {
  const FrameworkAtWork at_work;
  fake_cuda_kernel(at_work.stream, "first", 1000);
  fake_cuda_kernel(at_work.stream, "second", 1000);
  fake_cuda_advance_host(5000);
  const CUevent start = new_event();
  const CUevent end = new_event();
  cuEventRecord(start, at_work.s());
  fake_cuda_kernel(at_work.stream, "late", 300);
  cuEventRecord(end, at_work.s());
  cuStreamSynchronize(at_work.s());
  CHECK_EQUAL(fake_cuda_now_ns(), 5300);
  CHECK_EQUAL(span_ns(start, end), 300);
}

TEST("two non-blocking streams run at the same time") {
  const FrameworkAtWork at_work;
  const std::uint64_t other = fake_cuda_create_stream(at_work.context, 1);
  fake_cuda_kernel(at_work.stream, "a", 4000);
  fake_cuda_kernel(other, "b", 7000);
  cuCtxSynchronize();
  CHECK_EQUAL(fake_cuda_now_ns(), 7000);
}

TEST("the legacy default stream waits for blocking streams and they wait for it") {
  const FrameworkAtWork at_work;
  const std::uint64_t blocking = fake_cuda_create_stream(at_work.context, 0);
  fake_cuda_kernel(blocking, "before", 1000);
  fake_cuda_kernel(0, "default", 200);
  fake_cuda_kernel(blocking, "after", 30);
  fake_cuda_kernel(at_work.stream, "apart", 5);  // non-blocking: no part in it
  cuStreamSynchronize(at_work.s());
  CHECK_EQUAL(fake_cuda_now_ns(), 5);
  cuStreamSynchronize(nullptr);
  CHECK_EQUAL(fake_cuda_now_ns(), 1230);
}

TEST("the handle of the legacy stream and zero are the same stream") {
  const FrameworkAtWork at_work;
  fake_cuda_kernel(0, "default", 700);
  CHECK_EQUAL(cuStreamSynchronize(as_stream(1)), CUDA_SUCCESS);
  CHECK_EQUAL(fake_cuda_now_ns(), 700);
}

TEST("a per-thread default stream is not the legacy one but is ordered with it") {
  const FrameworkAtWork at_work;
  fake_cuda_kernel(2, "mine", 400);
  fake_cuda_kernel(0, "default", 100);
  cuStreamSynchronize(as_stream(2));
  CHECK_EQUAL(fake_cuda_now_ns(), 400);
  cuStreamSynchronize(nullptr);
  CHECK_EQUAL(fake_cuda_now_ns(), 500);
}

TEST("a stream that waits for an event starts after it, also across devices") {
  const FrameworkAtWork at_work;
  fake_cuda_set_device_count(2);
  const std::uint64_t second = fake_cuda_activate_primary_context(1);
  const std::uint64_t far = fake_cuda_create_stream(second, 1);
  const CUevent event = new_event();
  fake_cuda_kernel(at_work.stream, "near", 2500);
  cuEventRecord(event, at_work.s());
  CHECK_EQUAL(cuStreamWaitEvent(as_stream(far), event, 0), CUDA_SUCCESS);
  fake_cuda_kernel(far, "far", 500);
  cuStreamSynchronize(as_stream(far));
  CHECK_EQUAL(fake_cuda_now_ns(), 3000);
}

TEST("polling arrives in few calls and never oversteps the end of the work") {
  const FrameworkAtWork at_work;
  fake_cuda_kernel(at_work.stream, "second", 1'000'000'000);
  int looks = 0;
  while (cuStreamQuery(at_work.s()) == CUDA_ERROR_NOT_READY) ++looks;
  CHECK_EQUAL(fake_cuda_now_ns(), 1'000'000'000);
  CHECK(looks > 10);
  CHECK(looks < 2000);
}

TEST("the work of a destroyed stream still runs to its end") {
  const FrameworkAtWork at_work;
  CUstream stream = nullptr;
  CHECK_EQUAL(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING), CUDA_SUCCESS);
  CHECK_EQUAL(fake_cuda_outstanding("streams"), 1);
  fake_cuda_kernel(reinterpret_cast<std::uint64_t>(stream), "orphan", 900);
  CHECK_EQUAL(cuStreamDestroy_v2(stream), CUDA_SUCCESS);
  CHECK_EQUAL(fake_cuda_outstanding("streams"), 0);
  CHECK_EQUAL(cuStreamQuery(stream), CUDA_ERROR_INVALID_HANDLE);
  cuCtxSynchronize();
  CHECK_EQUAL(fake_cuda_now_ns(), 900);
}

TEST_MAIN()
