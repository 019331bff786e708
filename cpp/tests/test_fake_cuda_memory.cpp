#include <cstring>
#include <vector>

#include "check.hpp"
#include "fake_cuda_setup.hpp"

using namespace fairlap::test;

TEST("memory left behind is counted by kind") {
  const FrameworkAtWork at_work;
  CUdeviceptr device = 0;
  void* host = nullptr;
  std::vector<char> own(4096);
  CHECK_EQUAL(cuMemAlloc_v2(&device, 1000), CUDA_SUCCESS);
  CHECK_EQUAL(cuMemHostAlloc(&host, 64, 3), CUDA_SUCCESS);
  CHECK_EQUAL(cuMemHostRegister_v2(own.data(), own.size(), 0), CUDA_SUCCESS);
  CHECK_EQUAL(fake_cuda_outstanding("device_allocations"), 1);
  CHECK_EQUAL(fake_cuda_outstanding("device_bytes"), 1000);
  CHECK_EQUAL(fake_cuda_outstanding("host_allocations"), 1);
  CHECK_EQUAL(fake_cuda_outstanding("host_registrations"), 1);
  CHECK_EQUAL(fake_cuda_outstanding("no such kind"), -1);
  CHECK_EQUAL(cuMemFree_v2(device), CUDA_SUCCESS);
  CHECK_EQUAL(cuMemFreeHost(host), CUDA_SUCCESS);
  CHECK_EQUAL(cuMemHostUnregister(own.data()), CUDA_SUCCESS);
  CHECK_EQUAL(cuMemFree_v2(device), CUDA_ERROR_INVALID_VALUE);
  for (const char* kind : {"device_allocations", "host_allocations", "host_registrations"}) {
    CHECK_EQUAL(fake_cuda_outstanding(kind), 0);
  }
}

TEST("a device gives no more memory than it has and takes back what is freed") {
  const FrameworkAtWork at_work;
  fake_cuda_set_device_memory(0, 1 << 20);
  CUdeviceptr first = 0;
  CUdeviceptr second = 0;
  CHECK_EQUAL(cuMemAlloc_v2(&first, 700'000), CUDA_SUCCESS);
  CHECK_EQUAL(cuMemAlloc_v2(&second, 700'000), CUDA_ERROR_OUT_OF_MEMORY);
  cuMemFree_v2(first);
  CHECK_EQUAL(cuMemAlloc_v2(&second, 700'000), CUDA_SUCCESS);
  std::size_t free_bytes = 0;
  std::size_t total_bytes = 0;
  CHECK_EQUAL(cuMemGetInfo_v2(&free_bytes, &total_bytes), CUDA_SUCCESS);
  CHECK_EQUAL(total_bytes - free_bytes, 700'000U);
}

TEST("a fill and a copy change memory when the stream gets to them, not before") {
  const FrameworkAtWork at_work;
  std::uint32_t* host = new_flag();
  CUdeviceptr device = 0;
  cuMemAlloc_v2(&device, 64);
  fake_cuda_kernel(at_work.stream, "before", 1000);
  CHECK_EQUAL(cuMemsetD32Async(device, 0xABCD1234U, 16, at_work.s()), CUDA_SUCCESS);
  CHECK_EQUAL(cuMemcpyDtoHAsync_v2(host, device, 64, at_work.s()), CUDA_SUCCESS);
  fake_cuda_advance_host(500);
  CHECK_EQUAL(host[15], 0U);
  cuStreamSynchronize(at_work.s());
  CHECK_EQUAL(host[0], 0xABCD1234U);
  CHECK_EQUAL(host[15], 0xABCD1234U);
}

TEST("a fill takes longer when it is larger, and a cache flush does not touch its pages") {
  const FrameworkAtWork at_work;
  CUdeviceptr device = 0;
  const std::size_t bytes = std::size_t{1} << 30;
  cuMemAlloc_v2(&device, bytes);
  const CUevent start = new_event();
  const CUevent end = new_event();
  cuEventRecord(start, at_work.s());
  CHECK_EQUAL(cuMemsetD8Async(device, 1, bytes, at_work.s()), CUDA_SUCCESS);
  cuEventRecord(end, at_work.s());
  cuStreamSynchronize(at_work.s());
  CHECK_EQUAL(span_ns(start, end), 1000 + static_cast<std::int64_t>(bytes / 2000));
}

TEST("a synchronous copy waits for itself") {
  const FrameworkAtWork at_work;
  const char text[8] = "fairlap";
  char back[8] = "";
  CUdeviceptr device = 0;
  cuMemAlloc_v2(&device, 8);
  CHECK_EQUAL(cuMemcpyHtoD_v2(device, text, 8), CUDA_SUCCESS);
  CHECK_EQUAL(cuMemcpyDtoH_v2(back, device, 8), CUDA_SUCCESS);
  CHECK_EQUAL(std::string(back), "fairlap");
  CHECK(fake_cuda_now_ns() >= 2000);
}

TEST("addresses outside any allocation are refused") {
  const FrameworkAtWork at_work;
  CUdeviceptr device = 0;
  cuMemAlloc_v2(&device, 64);
  CHECK_EQUAL(cuMemsetD32Async(device, 0, 17, at_work.s()), CUDA_ERROR_INVALID_VALUE);
  CHECK_EQUAL(cuMemsetD32Async(device + 1, 0, 1, at_work.s()), CUDA_ERROR_INVALID_VALUE);
  CUdeviceptr seen = 0;
  int local = 0;
  CHECK_EQUAL(cuMemHostGetDevicePointer_v2(&seen, &local, 0), CUDA_ERROR_INVALID_VALUE);
}

TEST_MAIN()
