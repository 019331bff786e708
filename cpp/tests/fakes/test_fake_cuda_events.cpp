#include "tests/check.hpp"
#include "tests/fake_cuda_setup.hpp"

using namespace fairlap::test;

TEST("event times are quantised to the tick and given as single-precision milliseconds") {
  const FrameworkAtWork at_work;
  fake_cuda_set_event_tick(500);
  fake_cuda_advance_host(1499);
  const CUevent start = new_event();
  const CUevent end = new_event();
  cuEventRecord(start, at_work.s());  // 1499 -> 1000
  fake_cuda_kernel(at_work.stream, "k", 501);
  cuEventRecord(end, at_work.s());  // 2000
  cuStreamSynchronize(at_work.s());
  float milliseconds = 0;
  CHECK_EQUAL(cuEventElapsedTime(&milliseconds, start, end), CUDA_SUCCESS);
  CHECK_EQUAL(milliseconds, 0.001F);
  CHECK_EQUAL(cuEventElapsedTime_v2(&milliseconds, start, end), CUDA_SUCCESS);
  CHECK_EQUAL(milliseconds, 0.001F);
}

TEST("an event that was never recorded is done and has no time") {
  const FrameworkAtWork at_work;
  const CUevent event = new_event();
  float milliseconds = 0;
  CHECK_EQUAL(cuEventQuery(event), CUDA_SUCCESS);
  CHECK_EQUAL(cuEventSynchronize(event), CUDA_SUCCESS);
  CHECK_EQUAL(cuEventElapsedTime(&milliseconds, event, event), CUDA_ERROR_INVALID_HANDLE);
}

TEST("an event still to come is not ready, and waiting for it moves the host no further than it") {
  const FrameworkAtWork at_work;
  const CUevent event = new_event();
  fake_cuda_kernel(at_work.stream, "before", 800);
  cuEventRecord(event, at_work.s());
  fake_cuda_kernel(at_work.stream, "after", 800);
  float milliseconds = 0;
  CHECK_EQUAL(cuEventElapsedTime(&milliseconds, event, event), CUDA_ERROR_NOT_READY);
  CHECK_EQUAL(cuEventSynchronize(event), CUDA_SUCCESS);
  CHECK_EQUAL(fake_cuda_now_ns(), 800);
  CHECK_EQUAL(cuStreamQuery(at_work.s()), CUDA_ERROR_NOT_READY);
}

TEST("recording again forgets the first record") {
  const FrameworkAtWork at_work;
  const CUevent start = new_event();
  const CUevent end = new_event();
  cuEventRecord(start, at_work.s());
  fake_cuda_kernel(at_work.stream, "old", 100);
  cuEventRecord(start, at_work.s());
  fake_cuda_kernel(at_work.stream, "new", 40);
  cuEventRecord(end, at_work.s());
  cuStreamSynchronize(at_work.s());
  CHECK_EQUAL(span_ns(start, end), 40);
}

TEST("an event without timing, of another context, or destroyed is refused") {
  const FrameworkAtWork at_work;
  CUevent untimed = nullptr;
  CHECK_EQUAL(cuEventCreate(&untimed, 2), CUDA_SUCCESS);
  const CUevent timed = new_event();
  cuEventRecord(untimed, at_work.s());
  cuEventRecord(timed, at_work.s());
  float milliseconds = 0;
  CHECK_EQUAL(cuEventElapsedTime(&milliseconds, untimed, timed), CUDA_ERROR_INVALID_HANDLE);

  const std::uint64_t other = fake_cuda_create_context(0);
  const std::uint64_t foreign = fake_cuda_create_stream(other, 1);
  CHECK_EQUAL(cuEventRecord(timed, as_stream(foreign)), CUDA_ERROR_INVALID_HANDLE);

  CHECK_EQUAL(cuEventDestroy_v2(timed), CUDA_SUCCESS);
  CHECK_EQUAL(cuEventRecord(timed, at_work.s()), CUDA_ERROR_INVALID_HANDLE);
  CHECK_EQUAL(fake_cuda_outstanding("events"), 1);
}

TEST("a record takes its time on the stream when one was set") {
  const FrameworkAtWork at_work;
  fake_cuda_set_event_record_duration(250);
  const CUevent start = new_event();
  const CUevent end = new_event();
  cuEventRecord(start, at_work.s());
  cuEventRecord(end, at_work.s());
  cuStreamSynchronize(at_work.s());
  CHECK_EQUAL(span_ns(start, end), 250);
}

TEST("a context-wide record is after the work of every stream and holds up none") {
  const FrameworkAtWork at_work;
  const std::uint64_t other = fake_cuda_create_stream(at_work.context, 1);
  const CUevent start = new_event();
  const CUevent end = new_event();
  CHECK_EQUAL(cuCtxRecordEvent(at_work.c(), start), CUDA_SUCCESS);
  fake_cuda_kernel(at_work.stream, "seen", 1000);
  fake_cuda_kernel(other, "hidden", 6000);
  CHECK_EQUAL(cuCtxRecordEvent(at_work.c(), end), CUDA_SUCCESS);
  fake_cuda_kernel(at_work.stream, "next", 1000);
  cuStreamSynchronize(at_work.s());
  CHECK_EQUAL(fake_cuda_now_ns(), 2000);
  CHECK_EQUAL(cuEventQuery(end), CUDA_ERROR_NOT_READY);
  cuEventSynchronize(end);
  CHECK_EQUAL(span_ns(start, end), 6000);
}

TEST("a context that waits for an event starts later work after it") {
  const FrameworkAtWork at_work;
  const std::uint64_t other = fake_cuda_create_stream(at_work.context, 1);
  const CUevent event = new_event();
  fake_cuda_kernel(other, "long", 5000);
  cuEventRecord(event, as_stream(other));
  CHECK_EQUAL(cuCtxWaitEvent(at_work.c(), event), CUDA_SUCCESS);
  fake_cuda_kernel(at_work.stream, "short", 10);
  cuStreamSynchronize(at_work.s());
  CHECK_EQUAL(fake_cuda_now_ns(), 5010);
}

TEST_MAIN()
