#include <chrono>
#include <string>
#include <thread>

#include "cuda/driver/device_code.hpp"
#include "tests/check.hpp"
#include "tests/fake_cuda_setup.hpp"

using namespace fairlap::test;

namespace {

CUfunction load_kernel(const char* name) {
  CUmodule module = nullptr;
  CUfunction function = nullptr;
  CHECK_EQUAL(cuModuleLoadData(&module, kDeviceCode), CUDA_SUCCESS);
  CHECK_EQUAL(cuModuleGetFunction(&function, module, name), CUDA_SUCCESS);
  return function;
}

CUresult launch_spin_gate(CUstream stream, std::uint32_t* flag, std::uint32_t ticket,
                          std::uint64_t bound_ns) {
  const CUfunction spin = load_kernel(kSpinGateKernel);
  CUdeviceptr address = device_address(flag);
  void* parameters[] = {&address, &ticket, &bound_ns};
  return cuLaunchKernel(spin, 1, 1, 1, 1, 1, 1, 0, stream, parameters, nullptr);
}

}  // namespace

TEST("a gate holds everything behind it, and work starts at the now of its release") {
  const FrameworkAtWork at_work;
  std::uint32_t* flag = new_flag();
  const CUevent start = new_event();
  const CUevent end = new_event();
  CHECK_EQUAL(cuStreamWaitValue32_v2(at_work.s(), device_address(flag), 1, CU_STREAM_WAIT_VALUE_GEQ),
              CUDA_SUCCESS);
  cuEventRecord(start, at_work.s());
  fake_cuda_kernel(at_work.stream, "k", 700);
  cuEventRecord(end, at_work.s());
  fake_cuda_advance_host(10'000);
  CHECK_EQUAL(cuEventQuery(start), CUDA_ERROR_NOT_READY);
  CHECK_EQUAL(fake_cuda_pending_work(at_work.stream), 4);
  write_flag(flag, 1);
  CHECK_EQUAL(cuEventQuery(start), CUDA_SUCCESS);
  cuStreamSynchronize(at_work.s());
  CHECK_EQUAL(fake_cuda_now_ns(), 10'700);
  CHECK_EQUAL(span_ns(start, end), 700);
}

TEST("launch gaps stay out of an interval that was enqueued behind a gate") {
  const FrameworkAtWork at_work;
  fake_cuda_set_cost("cuLaunchKernel", 3000);
  std::uint32_t* flag = new_flag();
  const CUevent start = new_event();
  const CUevent end = new_event();
  cuStreamWaitValue32_v2(at_work.s(), device_address(flag), 1, CU_STREAM_WAIT_VALUE_GEQ);
  cuEventRecord(start, at_work.s());
  for (int i = 0; i < 10; ++i) fake_cuda_kernel(at_work.stream, "tiny", 20);
  cuEventRecord(end, at_work.s());
  write_flag(flag, 1);
  cuStreamSynchronize(at_work.s());
  CHECK_EQUAL(span_ns(start, end), 200);
}

TEST("a stream that reaches a gate already open is not held") {
  const FrameworkAtWork at_work;
  std::uint32_t* flag = new_flag();
  fake_cuda_kernel(at_work.stream, "before", 5000);
  cuStreamWaitValue32_v2(at_work.s(), device_address(flag), 1, CU_STREAM_WAIT_VALUE_GEQ);
  fake_cuda_kernel(at_work.stream, "after", 100);
  fake_cuda_advance_host(2000);
  write_flag(flag, 1);
  cuStreamSynchronize(at_work.s());
  CHECK_EQUAL(fake_cuda_now_ns(), 5100);
}

TEST("a flag that closes again before the stream arrives holds it") {
  const FrameworkAtWork at_work;
  std::uint32_t* flag = new_flag();
  fake_cuda_kernel(at_work.stream, "before", 5000);
  cuStreamWaitValue32_v2(at_work.s(), device_address(flag), 1, CU_STREAM_WAIT_VALUE_GEQ);
  write_flag(flag, 1);
  fake_cuda_advance_host(1000);
  write_flag(flag, 0);
  fake_cuda_advance_host(9000);
  CHECK_EQUAL(cuStreamQuery(at_work.s()), CUDA_ERROR_NOT_READY);
  write_flag(flag, 1);
  CHECK_EQUAL(cuStreamQuery(at_work.s()), CUDA_SUCCESS);
}

TEST("polling reaches a gate behind long work, and stops before it while it is closed") {
  const FrameworkAtWork at_work;
  std::uint32_t* flag = new_flag();
  fake_cuda_kernel(at_work.stream, "long", 50'000'000);
  cuStreamWaitValue32_v2(at_work.s(), device_address(flag), 1, CU_STREAM_WAIT_VALUE_GEQ);
  for (int i = 0; i < 1000; ++i) CHECK_EQUAL(cuStreamQuery(at_work.s()), CUDA_ERROR_NOT_READY);
  CHECK_EQUAL(fake_cuda_now_ns(), 50'000'000);
  write_flag(flag, 1);
  CHECK_EQUAL(cuStreamQuery(at_work.s()), CUDA_SUCCESS);
}

TEST("the comparison of the wait is cyclic") {
  const FrameworkAtWork at_work;
  std::uint32_t* flag = new_flag();
  write_flag(flag, 0xFFFFFFFFU);
  cuStreamWaitValue32_v2(at_work.s(), device_address(flag), 2, CU_STREAM_WAIT_VALUE_GEQ);
  CHECK_EQUAL(cuStreamQuery(at_work.s()), CUDA_ERROR_NOT_READY);
  write_flag(flag, 2);
  CHECK_EQUAL(cuStreamQuery(at_work.s()), CUDA_SUCCESS);
}

TEST("a call that waits for a closed gate really blocks until another thread writes the flag") {
  const FrameworkAtWork at_work;
  std::uint32_t* flag = new_flag();
  cuStreamWaitValue32_v2(at_work.s(), device_address(flag), 1, CU_STREAM_WAIT_VALUE_GEQ);
  fake_cuda_kernel(at_work.stream, "k", 300);
  const auto before = std::chrono::steady_clock::now();
  std::thread watchdog([flag] {
    while (fake_cuda_blocked_calls() == 0) std::this_thread::yield();
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
    write_flag(flag, 1);
  });
  CHECK_EQUAL(cuStreamSynchronize(at_work.s()), CUDA_SUCCESS);
  const auto blocked = std::chrono::steady_clock::now() - before;
  watchdog.join();
  CHECK(blocked >= std::chrono::milliseconds(20));
  CHECK_EQUAL(fake_cuda_now_ns(), 300);
}

TEST("a gate that is never opened ends the call with a time-out, not the test run") {
  const FrameworkAtWork at_work;
  fake_cuda_set_block_limit_ms(10);
  std::uint32_t* flag = new_flag();
  cuStreamWaitValue32_v2(at_work.s(), device_address(flag), 1, CU_STREAM_WAIT_VALUE_GEQ);
  CHECK_EQUAL(cuStreamSynchronize(at_work.s()), CUDA_ERROR_LAUNCH_TIMEOUT);
}

TEST("a free inside a closed gate blocks, as the real one does") {
  const FrameworkAtWork at_work;
  fake_cuda_set_block_limit_ms(10);
  std::uint32_t* flag = new_flag();
  CUdeviceptr buffer = 0;
  cuMemAlloc_v2(&buffer, 4096);
  cuStreamWaitValue32_v2(at_work.s(), device_address(flag), 1, CU_STREAM_WAIT_VALUE_GEQ);
  CHECK_EQUAL(cuMemFree_v2(buffer), CUDA_ERROR_LAUNCH_TIMEOUT);
  write_flag(flag, 1);
  CHECK_EQUAL(cuMemFree_v2(buffer), CUDA_SUCCESS);
}

TEST("a stream's write opens another stream's gate at its exact time") {
  const FrameworkAtWork at_work;
  const std::uint64_t other = fake_cuda_create_stream(at_work.context, 1);
  std::uint32_t* flag = new_flag();
  cuStreamWaitValue32_v2(at_work.s(), device_address(flag), 7, 1);
  fake_cuda_kernel(at_work.stream, "k", 40);
  fake_cuda_kernel(other, "before the write", 1000);
  CHECK_EQUAL(cuStreamWriteValue32_v2(as_stream(other), device_address(flag), 7, 0), CUDA_SUCCESS);
  CHECK_EQUAL(cuStreamSynchronize(at_work.s()), CUDA_SUCCESS);
  CHECK_EQUAL(fake_cuda_now_ns(), 1040);
}

TEST("the spin gate kernel waits for its ticket") {
  const FrameworkAtWork at_work;
  std::uint32_t* flag = new_flag();
  CHECK_EQUAL(launch_spin_gate(at_work.s(), flag, 3, 0), CUDA_SUCCESS);
  fake_cuda_advance_host(2500);
  write_flag(flag, 2);
  CHECK_EQUAL(cuStreamQuery(at_work.s()), CUDA_ERROR_NOT_READY);
  write_flag(flag, 3);
  CHECK_EQUAL(cuStreamQuery(at_work.s()), CUDA_SUCCESS);
  CHECK_EQUAL(flag[1], 0U);
}

TEST("a bounded spin gate that is never opened ends by itself and reports which ticket it gave up on") {
  const FrameworkAtWork at_work;
  std::uint32_t* flag = new_flag();
  CHECK_EQUAL(launch_spin_gate(at_work.s(), flag, 3, 2'000'000), CUDA_SUCCESS);
  CHECK_EQUAL(cuStreamSynchronize(at_work.s()), CUDA_SUCCESS);
  CHECK_EQUAL(fake_cuda_now_ns(), 2'000'000);
  CHECK_EQUAL(flag[1], 3U);
}

TEST("a spin by the clock lasts its parameter and leaves its stamps") {
  const FrameworkAtWork at_work;
  auto* stamps = reinterpret_cast<std::uint64_t*>(new_flag());
  std::uint64_t length_ns = 12'345;
  CUdeviceptr address = device_address(stamps);
  void* parameters[] = {&length_ns, &address};
  fake_cuda_advance_host(1000);
  fake_cuda_set_globaltimer_step(1);
  CHECK_EQUAL(
      cuLaunchKernel(load_kernel(kSpinNsKernel), 1, 1, 1, 1, 1, 1, 0, at_work.s(), parameters, nullptr),
      CUDA_SUCCESS);
  cuStreamSynchronize(at_work.s());
  CHECK_EQUAL(fake_cuda_now_ns(), 13'345);
  CHECK_EQUAL(stamps[0], 1000U);
  CHECK_EQUAL(stamps[1], 13'345U);
}

// %globaltimer steps by 1024 ns on an A100 and an RTX 4090; %clock64 counts every cycle.
TEST("a kernel's own clock shows what its timer is too coarse for, and the two agree between steps") {
  const FrameworkAtWork at_work;
  fake_cuda_set_globaltimer_step(1024);
  auto* readings = reinterpret_cast<std::uint64_t*>(new_flag());
  CUdeviceptr address = device_address(readings);
  std::uint64_t length = 990;  // cycles at 1.98 GHz, or nanoseconds
  void* parameters[] = {&length, &address};
  fake_cuda_advance_host(1100);
  const auto run = [&](const char* kernel) {
    CHECK_EQUAL(cuLaunchKernel(load_kernel(kernel), 1, 1, 1, 1, 1, 1, 0, at_work.s(), parameters, nullptr),
                CUDA_SUCCESS);
    cuStreamSynchronize(at_work.s());
  };
  run(kSpinNsKernel);
  CHECK_EQUAL(readings[1] - readings[0], 1024U);
  run(kSpinCyclesKernel);
  CHECK_EQUAL(readings[1] - readings[0], 990U);
  length = 100'000;
  run(kClockRateKernel);
  CHECK_EQUAL(readings[2] - readings[0], 100'352U);
  const auto cycles = static_cast<double>(readings[3] - readings[1]);
  CHECK_NEAR(cycles / static_cast<double>(readings[2] - readings[0]), 1.98, 0.0001);
}

TEST("a driver may refuse waits on values or take them and not hold the stream") {
  const FrameworkAtWork at_work;
  std::uint32_t* flag = new_flag();
  fake_cuda_set_stream_waits(1);
  CHECK_EQUAL(cuStreamWaitValue32_v2(at_work.s(), device_address(flag), 1, 0), CUDA_ERROR_NOT_SUPPORTED);
  fake_cuda_set_stream_waits(2);
  CHECK_EQUAL(cuStreamWaitValue32_v2(at_work.s(), device_address(flag), 1, 0), CUDA_SUCCESS);
  CHECK_EQUAL(cuStreamQuery(at_work.s()), CUDA_SUCCESS);
}

TEST("a wait on memory that the device can't see is refused") {
  const FrameworkAtWork at_work;
  std::uint32_t local = 0;
  const auto address = reinterpret_cast<CUdeviceptr>(&local);
  CHECK_EQUAL(cuStreamWaitValue32_v2(at_work.s(), address, 1, 0), CUDA_ERROR_INVALID_VALUE);
  std::uint32_t* flag = new_flag();
  CHECK_EQUAL(cuStreamWaitValue32_v2(at_work.s(), device_address(flag) + 2, 1, 0), CUDA_ERROR_INVALID_VALUE);
  cuMemFreeHost(flag);
  CHECK_EQUAL(cuStreamWaitValue32_v2(at_work.s(), reinterpret_cast<CUdeviceptr>(flag), 1, 0),
              CUDA_ERROR_INVALID_VALUE);
}

TEST_MAIN()
