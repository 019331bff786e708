#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <string>
#include <vector>

#include "tests/check.hpp"
#include "tests/fake_cuda_setup.hpp"

// Where NVIDIA's manual says that a handle or address is no longer valid: after cuEventDestroy,
// cuStreamDestroy, cuModuleUnload, cuMemFree, cuMemFreeHost and cuMemHostUnregister. What a real driver does
// then is undefined.
using namespace fairlap::test;

namespace {

std::string only_misuse() {
  CHECK_EQUAL(fake_cuda_misuses(), 1);
  return fake_cuda_misuse(0);
}

constexpr const char* kCode = ".version 6.3\n.target sm_70\n.visible .entry nothing() { ret; }\n";

}  // namespace

TEST("an event that is recorded, queried or destroyed again after its destruction is noted") {
  const FrameworkAtWork at_work;
  const CUevent event = new_event();
  cuEventDestroy_v2(event);
  CHECK_EQUAL(fake_cuda_misuses(), 0);
  cuEventRecord(event, at_work.s());
  CHECK_EQUAL(only_misuse(), std::string("cuEventRecord used event after cuEventDestroy_v2"));
  cuEventQuery(event);
  cuEventDestroy_v2(event);
  CHECK_EQUAL(fake_cuda_misuses(), 3);
  CHECK(fake_cuda_misuse(3) == nullptr);
  fake_cuda_reset();
  CHECK_EQUAL(fake_cuda_misuses(), 0);
}

TEST("a stream that is used after its destruction is noted, and a framework's is the framework's affair") {
  const FrameworkAtWork at_work;
  CUstream own = nullptr;
  cuStreamCreate(&own, 1);
  cuStreamDestroy_v2(own);
  const CUevent event = new_event();
  cuEventRecord(event, own);
  CHECK_EQUAL(only_misuse(), std::string("cuEventRecord used stream after cuStreamDestroy_v2"));
  fake_cuda_destroy_stream(at_work.stream);
  cuStreamQuery(at_work.s());
  CHECK_EQUAL(fake_cuda_misuses(), 1);
}

TEST("a function of a module that was unloaded is noted when it is launched, and so is the module") {
  const FrameworkAtWork at_work;
  CUmodule module = nullptr;
  CUfunction function = nullptr;
  cuModuleLoadData(&module, kCode);
  cuModuleGetFunction(&function, module, "nothing");
  cuModuleUnload(module);
  cuLaunchKernel(function, 1, 1, 1, 1, 1, 1, 0, at_work.s(), nullptr, nullptr);
  CHECK_EQUAL(only_misuse(), std::string("cuLaunchKernel used function after cuModuleUnload"));
  cuModuleUnload(module);
  CHECK_EQUAL(std::string(fake_cuda_misuse(1)),
              std::string("cuModuleUnload used module after cuModuleUnload"));
}

TEST("memory that is written or freed again after it was freed is noted, until new memory lies there") {
  const FrameworkAtWork at_work;
  CUdeviceptr memory = 0;
  cuMemAlloc_v2(&memory, 4096);
  cuMemFree_v2(memory);
  cuMemsetD32Async(memory + 1024, 7, 16, at_work.s());
  CHECK_EQUAL(only_misuse(), std::string("cuMemsetD32Async used memory after cuMemFree_v2"));
  cuMemFree_v2(memory);
  CHECK_EQUAL(fake_cuda_misuses(), 2);

  std::uint32_t* flag = new_flag();
  const CUdeviceptr address = device_address(flag);
  cuMemFreeHost(flag);
  cuStreamWaitValue32_v2(at_work.s(), address, 1, 0);
  CHECK_EQUAL(fake_cuda_misuses(), 3);

  alignas(64) static std::uint32_t page[1024];
  for (int turn = 0; turn < 2; ++turn) {
    cuMemHostRegister_v2(page, sizeof page, 2);
    CHECK_EQUAL(cuStreamWriteValue32_v2(at_work.s(), device_address(page), 1, 0), CUDA_SUCCESS);
    cuMemHostUnregister(page);
  }
  CHECK_EQUAL(fake_cuda_misuses(), 3);
}

TEST("an address that was never given out is an error and no misuse") {
  const FrameworkAtWork at_work;
  std::uint32_t local = 0;
  CHECK(cuMemsetD32Async(reinterpret_cast<CUdeviceptr>(&local), 7, 1, at_work.s()) != CUDA_SUCCESS);
  CHECK(cuEventDestroy_v2(reinterpret_cast<CUevent>(&local)) != CUDA_SUCCESS);
  CHECK_EQUAL(fake_cuda_misuses(), 0);
}

TEST("what is misused, and what is left when a process ends, is in its report") {
  const FrameworkAtWork at_work;
  char name[] = "/tmp/fairlap-report-XXXXXX";
  const int file = mkstemp(name);
  CHECK(file >= 0);
  close(file);
  const pid_t child = fork();
  if (child == 0) {
    setenv("CUDA_FAKE_REPORT", name, 1);
    new_flag();
    new_event();
    cuEventDestroy_v2(new_event());
    const CUevent gone = new_event();
    cuEventDestroy_v2(gone);
    cuEventQuery(gone);
    std::exit(0);
  }
  int status = 0;
  CHECK_EQUAL(waitpid(child, &status, 0), child);
  CHECK_EQUAL(status, 0);
  std::vector<std::string> lines;
  std::ifstream report(name);
  for (std::string line; std::getline(report, line);) lines.push_back(line);
  std::remove(name);
  const std::vector<std::string> expected = {"cuEventQuery used event after cuEventDestroy_v2",
                                             "left 1 events", "left 1 host_allocations"};
  CHECK(lines.size() >= expected.size());  // those of the tests before are in the report of the process too
  CHECK(std::equal(expected.begin(), expected.end(), lines.end() - 3));
}

TEST_MAIN()
