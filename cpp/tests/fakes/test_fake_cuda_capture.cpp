#include <thread>

#include "tests/check.hpp"
#include "tests/fake_cuda_setup.hpp"

using namespace fairlap::test;

namespace {

constexpr int kIllegalState = 401;
constexpr CUstreamCaptureMode kGlobal = 0;
constexpr CUstreamCaptureMode kThreadLocal = 1;

CUgraphExec instantiate(CUgraph graph) {
  CUgraphExec exec = nullptr;
  CHECK_EQUAL(cuGraphInstantiateWithFlags(&exec, graph, 0), CUDA_SUCCESS);
  return exec;
}

CUstreamCaptureStatus status_of(CUstream stream) {
  CUstreamCaptureStatus status = -1;
  CHECK_EQUAL(cuStreamIsCapturing(stream, &status), CUDA_SUCCESS);
  return status;
}

}  // namespace

TEST("captured work does not run until its graph is launched, and then lasts what it would have") {
  const FrameworkAtWork at_work;
  CHECK_EQUAL(cuStreamBeginCapture_v2(at_work.s(), kGlobal), CUDA_SUCCESS);
  CHECK_EQUAL(status_of(at_work.s()), CU_STREAM_CAPTURE_STATUS_ACTIVE);
  CHECK_EQUAL(fake_cuda_kernel(at_work.stream, "a", 300), CUDA_SUCCESS);
  CHECK_EQUAL(fake_cuda_kernel(at_work.stream, "b", 500), CUDA_SUCCESS);
  CHECK_EQUAL(fake_cuda_pending_work(0), 0);
  CUgraph graph = nullptr;
  CHECK_EQUAL(cuStreamEndCapture(at_work.s(), &graph), CUDA_SUCCESS);
  std::size_t nodes = 0;
  CHECK_EQUAL(cuGraphGetNodes(graph, nullptr, &nodes), CUDA_SUCCESS);
  CHECK_EQUAL(nodes, 2U);

  const CUgraphExec exec = instantiate(graph);
  const CUevent start = new_event();
  const CUevent end = new_event();
  CHECK_EQUAL(cuGraphUpload(exec, at_work.s()), CUDA_SUCCESS);
  cuEventRecord(start, at_work.s());
  CHECK_EQUAL(cuGraphLaunch(exec, at_work.s()), CUDA_SUCCESS);
  CHECK_EQUAL(cuGraphLaunch(exec, at_work.s()), CUDA_SUCCESS);
  cuEventRecord(end, at_work.s());
  cuStreamSynchronize(at_work.s());
  CHECK_EQUAL(span_ns(start, end), 1600);

  CHECK_EQUAL(fake_cuda_outstanding("graphs"), 1);
  CHECK_EQUAL(fake_cuda_outstanding("graph_execs"), 1);
  CHECK_EQUAL(cuGraphExecDestroy(exec), CUDA_SUCCESS);
  CHECK_EQUAL(cuGraphDestroy(graph), CUDA_SUCCESS);
  CHECK_EQUAL(cuGraphLaunch(exec, at_work.s()), CUDA_ERROR_INVALID_VALUE);
  CHECK_EQUAL(fake_cuda_outstanding("graphs") + fake_cuda_outstanding("graph_execs"), 0);
}

TEST("a fork through events is captured as two branches that run side by side") {
  const FrameworkAtWork at_work;
  const std::uint64_t side = fake_cuda_create_stream(at_work.context, 1);
  const CUevent fork = new_event();
  const CUevent join = new_event();
  cuStreamBeginCapture_v2(at_work.s(), kGlobal);
  cuEventRecord(fork, at_work.s());
  CHECK_EQUAL(cuStreamWaitEvent(as_stream(side), fork, 0), CUDA_SUCCESS);
  fake_cuda_kernel(side, "side", 4000);
  fake_cuda_kernel(at_work.stream, "main", 1000);
  cuEventRecord(join, as_stream(side));
  CHECK_EQUAL(cuStreamWaitEvent(at_work.s(), join, 0), CUDA_SUCCESS);
  CHECK_EQUAL(cuEventQuery(join), CUDA_ERROR_CAPTURED_EVENT);
  fake_cuda_kernel(at_work.stream, "after", 10);
  CUgraph graph = nullptr;
  CHECK_EQUAL(cuStreamEndCapture(at_work.s(), &graph), CUDA_SUCCESS);
  CHECK_EQUAL(status_of(as_stream(side)), CU_STREAM_CAPTURE_STATUS_NONE);
  cuGraphLaunch(instantiate(graph), at_work.s());
  cuStreamSynchronize(at_work.s());
  CHECK_EQUAL(fake_cuda_now_ns(), 4010);
}

TEST("a fork that is not joined makes the capture fail") {
  const FrameworkAtWork at_work;
  const std::uint64_t side = fake_cuda_create_stream(at_work.context, 1);
  const CUevent fork = new_event();
  cuStreamBeginCapture_v2(at_work.s(), kGlobal);
  cuEventRecord(fork, at_work.s());
  cuStreamWaitEvent(as_stream(side), fork, 0);
  fake_cuda_kernel(side, "side", 4000);
  CUgraph graph = nullptr;
  CHECK_EQUAL(cuStreamEndCapture(at_work.s(), &graph), CUDA_ERROR_STREAM_CAPTURE_UNJOINED);
  CHECK(graph == nullptr);
  CHECK_EQUAL(status_of(at_work.s()), CU_STREAM_CAPTURE_STATUS_NONE);
}

TEST("synchronising with a capturing stream is refused and spoils the capture") {
  const FrameworkAtWork at_work;
  cuStreamBeginCapture_v2(at_work.s(), CU_STREAM_CAPTURE_MODE_RELAXED);
  CHECK_EQUAL(cuStreamSynchronize(at_work.s()), CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED);
  CHECK_EQUAL(status_of(at_work.s()), CU_STREAM_CAPTURE_STATUS_INVALIDATED);
  CHECK_EQUAL(fake_cuda_kernel(at_work.stream, "k", 1), CUDA_ERROR_STREAM_CAPTURE_INVALIDATED);
  CUgraph graph = nullptr;
  CHECK_EQUAL(cuStreamEndCapture(at_work.s(), &graph), CUDA_ERROR_STREAM_CAPTURE_INVALIDATED);
  CHECK(graph == nullptr);
  CHECK_EQUAL(fake_cuda_outstanding("captures"), 0);
}

TEST(
    "allocation and event queries spoil a global capture from any thread, and a thread-local one from its "
    "own") {
  for (const CUstreamCaptureMode mode : {kGlobal, kThreadLocal, CU_STREAM_CAPTURE_MODE_RELAXED}) {
    const FrameworkAtWork at_work;
    const CUevent event = new_event();
    cuStreamBeginCapture_v2(at_work.s(), mode);
    CUresult elsewhere = -1;
    std::thread([&] { elsewhere = cuEventQuery(event); }).join();
    CHECK_EQUAL(elsewhere, mode == kGlobal ? CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED : CUDA_SUCCESS);
    CUdeviceptr memory = 0;
    const CUresult here = cuMemAlloc_v2(&memory, 64);
    CHECK_EQUAL(
        here, mode == CU_STREAM_CAPTURE_MODE_RELAXED ? CUDA_SUCCESS : CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED);
    CUgraph graph = nullptr;
    CHECK_EQUAL(cuStreamEndCapture(at_work.s(), &graph), mode == CU_STREAM_CAPTURE_MODE_RELAXED
                                                             ? CUDA_SUCCESS
                                                             : CUDA_ERROR_STREAM_CAPTURE_INVALIDATED);
  }
}

TEST("a thread in the relaxed mode spoils no capture") {
  const FrameworkAtWork at_work;
  const CUevent event = new_event();
  cuStreamBeginCapture_v2(at_work.s(), kGlobal);
  CUresult asked = -1;
  CUstreamCaptureMode mode = CU_STREAM_CAPTURE_MODE_RELAXED;
  std::thread([&] {
    CHECK_EQUAL(cuThreadExchangeStreamCaptureMode(&mode), CUDA_SUCCESS);
    asked = cuEventQuery(event);
    cuThreadExchangeStreamCaptureMode(&mode);
  }).join();
  CHECK_EQUAL(asked, CUDA_SUCCESS);
  CHECK_EQUAL(mode, CU_STREAM_CAPTURE_MODE_RELAXED);  // what the thread was left in, given back
  CHECK_EQUAL(status_of(at_work.s()), CU_STREAM_CAPTURE_STATUS_ACTIVE);
  mode = 7;
  CHECK_EQUAL(cuThreadExchangeStreamCaptureMode(&mode), CUDA_ERROR_INVALID_VALUE);
}

TEST("the legacy stream must not be used during the capture of a blocking stream") {
  const FrameworkAtWork at_work;
  const std::uint64_t blocking = fake_cuda_create_stream(at_work.context, 0);
  cuStreamBeginCapture_v2(as_stream(blocking), CU_STREAM_CAPTURE_MODE_RELAXED);
  CUstreamCaptureStatus status = -1;
  CHECK_EQUAL(cuStreamIsCapturing(nullptr, &status), CUDA_ERROR_STREAM_CAPTURE_IMPLICIT);
  CHECK_EQUAL(status_of(as_stream(blocking)), CU_STREAM_CAPTURE_STATUS_ACTIVE);
  CHECK_EQUAL(fake_cuda_kernel(0, "k", 1), CUDA_ERROR_STREAM_CAPTURE_IMPLICIT);
  CHECK_EQUAL(status_of(as_stream(blocking)), CU_STREAM_CAPTURE_STATUS_INVALIDATED);
}

TEST("the legacy stream itself can't be captured, nor a stream twice, nor be ended unbegun") {
  const FrameworkAtWork at_work;
  CUgraph graph = nullptr;
  CHECK_EQUAL(cuStreamBeginCapture_v2(nullptr, kGlobal), CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED);
  CHECK_EQUAL(cuStreamEndCapture(at_work.s(), &graph), kIllegalState);
  cuStreamBeginCapture_v2(at_work.s(), kGlobal);
  CHECK_EQUAL(cuStreamBeginCapture_v2(at_work.s(), kGlobal), kIllegalState);
}

TEST("waiting inside a capture for work outside it is refused") {
  const FrameworkAtWork at_work;
  const CUevent outside = new_event();
  cuEventRecord(outside, at_work.s());
  cuStreamBeginCapture_v2(at_work.s(), kGlobal);
  CHECK_EQUAL(cuStreamWaitEvent(at_work.s(), outside, 0), CUDA_ERROR_STREAM_CAPTURE_ISOLATION);
  CHECK_EQUAL(status_of(at_work.s()), CU_STREAM_CAPTURE_STATUS_INVALIDATED);
}

TEST("two captures must not be merged and one must end where it began, in its thread") {
  const FrameworkAtWork at_work;
  const std::uint64_t other = fake_cuda_create_stream(at_work.context, 1);
  const CUevent event = new_event();
  cuStreamBeginCapture_v2(at_work.s(), kThreadLocal);
  cuStreamBeginCapture_v2(as_stream(other), kThreadLocal);
  CUgraph graph = nullptr;
  CUresult elsewhere = -1;
  std::thread([&] { elsewhere = cuStreamEndCapture(as_stream(other), &graph); }).join();
  CHECK_EQUAL(elsewhere, CUDA_ERROR_STREAM_CAPTURE_WRONG_THREAD);
  cuEventRecord(event, at_work.s());
  CHECK_EQUAL(cuStreamWaitEvent(as_stream(other), event, 0), CUDA_ERROR_STREAM_CAPTURE_MERGE);

  const FrameworkAtWork again;
  const std::uint64_t side = fake_cuda_create_stream(again.context, 1);
  const CUevent fork = new_event();
  cuStreamBeginCapture_v2(again.s(), kThreadLocal);
  cuEventRecord(fork, again.s());
  cuStreamWaitEvent(as_stream(side), fork, 0);
  CHECK_EQUAL(cuStreamEndCapture(as_stream(side), &graph), CUDA_ERROR_STREAM_CAPTURE_UNMATCHED);
}

TEST("a context-wide record or synchronise spoils a capture of any mode") {
  const FrameworkAtWork at_work;
  const CUevent event = new_event();
  cuStreamBeginCapture_v2(at_work.s(), CU_STREAM_CAPTURE_MODE_RELAXED);
  CHECK_EQUAL(cuCtxRecordEvent(at_work.c(), event), CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED);
  CHECK_EQUAL(status_of(at_work.s()), CU_STREAM_CAPTURE_STATUS_INVALIDATED);
  CHECK_EQUAL(cuCtxSynchronize(), CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED);
}

TEST("a gate may be captured and holds each launch of its graph") {
  const FrameworkAtWork at_work;
  std::uint32_t* flag = new_flag();
  cuStreamBeginCapture_v2(at_work.s(), CU_STREAM_CAPTURE_MODE_RELAXED);
  CHECK_EQUAL(cuStreamWaitValue32_v2(at_work.s(), device_address(flag), 1, 0), CUDA_SUCCESS);
  fake_cuda_kernel(at_work.stream, "k", 60);
  CUgraph graph = nullptr;
  cuStreamEndCapture(at_work.s(), &graph);
  cuGraphLaunch(instantiate(graph), at_work.s());
  fake_cuda_advance_host(500);
  CHECK_EQUAL(cuStreamQuery(at_work.s()), CUDA_ERROR_NOT_READY);
  write_flag(flag, 1);
  cuStreamSynchronize(at_work.s());
  CHECK_EQUAL(fake_cuda_now_ns(), 560);
}

TEST_MAIN()
