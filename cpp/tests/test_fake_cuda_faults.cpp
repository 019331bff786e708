#include <atomic>
#include <string>
#include <thread>
#include <vector>

#include "check.hpp"
#include "fake_cuda_setup.hpp"

using namespace fairlap::test;

TEST("the nth call from now fails with the given error, and only that one") {
  const FrameworkAtWork at_work;
  const CUevent event = new_event();
  fake_cuda_fail("cuEventRecord", 2, CUDA_ERROR_LAUNCH_FAILED);
  CHECK_EQUAL(cuEventRecord(event, at_work.s()), CUDA_SUCCESS);
  CHECK_EQUAL(cuEventRecord(event, at_work.s()), CUDA_ERROR_LAUNCH_FAILED);
  CHECK_EQUAL(cuEventRecord(event, at_work.s()), CUDA_SUCCESS);
  CHECK_EQUAL(fake_cuda_call_count("cuEventRecord"), 3);
}

TEST("a call that fails does nothing") {
  const FrameworkAtWork at_work;
  fake_cuda_fail("cuMemAlloc_v2", 1, CUDA_ERROR_OUT_OF_MEMORY);
  CUdeviceptr memory = 0;
  CHECK_EQUAL(cuMemAlloc_v2(&memory, 64), CUDA_ERROR_OUT_OF_MEMORY);
  CHECK_EQUAL(memory, 0U);
  CHECK_EQUAL(fake_cuda_outstanding("device_allocations"), 0);
}

TEST("n of zero fails every call until the faults are forgotten") {
  const FrameworkAtWork at_work;
  fake_cuda_fail("cuStreamQuery", 0, CUDA_ERROR_UNKNOWN);
  CHECK_EQUAL(cuStreamQuery(at_work.s()), CUDA_ERROR_UNKNOWN);
  CHECK_EQUAL(cuStreamQuery(at_work.s()), CUDA_ERROR_UNKNOWN);
  fake_cuda_forget_faults();
  CHECK_EQUAL(cuStreamQuery(at_work.s()), CUDA_SUCCESS);
}

TEST("a star stands for the nth call of any function") {
  const FrameworkAtWork at_work;
  fake_cuda_reset_call_counts();
  fake_cuda_fail("*", 3, CUDA_ERROR_ECC_UNCORRECTABLE);
  CUevent event = nullptr;
  CHECK_EQUAL(cuEventCreate(&event, 0), CUDA_SUCCESS);
  CHECK_EQUAL(cuEventRecord(event, at_work.s()), CUDA_SUCCESS);
  CHECK_EQUAL(cuEventQuery(event), CUDA_ERROR_ECC_UNCORRECTABLE);
  CHECK_EQUAL(cuEventQuery(event), CUDA_SUCCESS);
  CHECK_EQUAL(fake_cuda_call_count("*"), 4);
}

TEST("a poisoned device gives its error from every call until healed") {
  const FrameworkAtWork at_work;
  fake_cuda_poison(CUDA_ERROR_ILLEGAL_ADDRESS);
  CHECK_EQUAL(cuStreamSynchronize(at_work.s()), CUDA_ERROR_ILLEGAL_ADDRESS);
  CHECK_EQUAL(cuCtxSynchronize(), CUDA_ERROR_ILLEGAL_ADDRESS);
  fake_cuda_poison(0);
  CHECK_EQUAL(cuCtxSynchronize(), CUDA_SUCCESS);
}

TEST("errors have names and texts, and unknown codes have neither") {
  const FrameworkAtWork at_work;
  const char* text = nullptr;
  CHECK_EQUAL(cuGetErrorName(CUDA_ERROR_NOT_READY, &text), CUDA_SUCCESS);
  CHECK_EQUAL(std::string(text), "CUDA_ERROR_NOT_READY");
  CHECK_EQUAL(cuGetErrorString(CUDA_ERROR_NOT_READY, &text), CUDA_SUCCESS);
  CHECK(std::string(text).find("NOT_READY") != std::string::npos);
  CHECK_EQUAL(cuGetErrorString(424242, &text), CUDA_ERROR_INVALID_VALUE);
  CHECK(text == nullptr);
}

TEST("threads may use the driver at the same time") {
  const FrameworkAtWork at_work;
  std::atomic<int> failures = 0;
  std::vector<std::thread> threads;
  for (int i = 0; i < 4; ++i) {
    threads.emplace_back([&] {
      fake_cuda_make_current(at_work.context);
      const std::uint64_t stream = fake_cuda_create_stream(at_work.context, 1);
      const CUevent event = new_event();
      for (int k = 0; k < 200; ++k) {
        if (fake_cuda_kernel(stream, "k", 100) != 0) ++failures;
        if (cuEventRecord(event, as_stream(stream)) != 0) ++failures;
        if (k % 10 == 0 && cuEventSynchronize(event) != 0) ++failures;
      }
      if (cuStreamSynchronize(as_stream(stream)) != 0) ++failures;
      if (fake_cuda_pending_work(stream) != 0) ++failures;
    });
  }
  for (std::thread& thread : threads) thread.join();
  CHECK_EQUAL(failures.load(), 0);
  CHECK(fake_cuda_now_ns() >= 20'000);
}

TEST_MAIN()
