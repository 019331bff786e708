#include <string>
#include <thread>

#include "cuda/driver/device_code.hpp"
#include "tests/check.hpp"
#include "tests/fake_cuda_setup.hpp"

using namespace fairlap::test;

TEST("a primary context is not active until it is created") {
  fake_cuda_reset();
  cuInit(0);
  unsigned int flags = 0;
  int active = -1;
  CHECK_EQUAL(cuDevicePrimaryCtxGetState(0, &flags, &active), CUDA_SUCCESS);
  CHECK_EQUAL(active, 0);
  fake_cuda_activate_primary_context(0);
  cuDevicePrimaryCtxGetState(0, &flags, &active);
  CHECK_EQUAL(active, 1);
}

TEST("a retained context outlives the framework and is counted until released") {
  const FrameworkAtWork at_work;
  CUcontext retained = nullptr;
  CHECK_EQUAL(cuDevicePrimaryCtxRetain(&retained, 0), CUDA_SUCCESS);
  CHECK(retained == at_work.c());
  CHECK_EQUAL(fake_cuda_outstanding("primary_retains"), 1);
  fake_cuda_deactivate_primary_context(0);
  CHECK_EQUAL(fake_cuda_context_device(at_work.context), 0);
  CHECK_EQUAL(cuDevicePrimaryCtxRelease_v2(0), CUDA_SUCCESS);
  CHECK_EQUAL(fake_cuda_context_device(at_work.context), -1);
  CHECK_EQUAL(cuDevicePrimaryCtxRelease_v2(0), CUDA_ERROR_INVALID_CONTEXT);
}

TEST("streams and events die with their context") {
  const FrameworkAtWork at_work;
  const CUevent event = new_event();
  fake_cuda_deactivate_primary_context(0);
  fake_cuda_make_current(fake_cuda_activate_primary_context(0));
  CHECK_EQUAL(cuStreamQuery(at_work.s()), CUDA_ERROR_INVALID_HANDLE);
  CHECK_EQUAL(cuEventQuery(event), CUDA_ERROR_CONTEXT_IS_DESTROYED);
}

TEST("each thread has its own stack of contexts") {
  const FrameworkAtWork at_work;
  const std::uint64_t other = fake_cuda_create_context(0);
  CHECK_EQUAL(cuCtxPushCurrent_v2(reinterpret_cast<CUcontext>(other)), CUDA_SUCCESS);
  CHECK_EQUAL(fake_cuda_outstanding("pushed_contexts"), 1);
  CUcontext current = nullptr;
  cuCtxGetCurrent(&current);
  CHECK_EQUAL(reinterpret_cast<std::uint64_t>(current), other);
  CUcontext elsewhere = reinterpret_cast<CUcontext>(1);
  CUresult no_context = -1;
  std::thread([&] {
    cuCtxGetCurrent(&elsewhere);
    no_context = cuCtxSynchronize();
  }).join();
  CHECK(elsewhere == nullptr);
  CHECK_EQUAL(no_context, CUDA_ERROR_INVALID_CONTEXT);
  CHECK_EQUAL(cuCtxPopCurrent_v2(&current), CUDA_SUCCESS);
  CHECK_EQUAL(fake_cuda_current_context(), at_work.context);
  CHECK_EQUAL(fake_cuda_outstanding("pushed_contexts"), 0);
}

TEST("a stream knows its context, and a default stream is the current one's") {
  const FrameworkAtWork at_work;
  CUcontext context = nullptr;
  CHECK_EQUAL(cuStreamGetCtx(at_work.s(), &context), CUDA_SUCCESS);
  CHECK(context == at_work.c());
  const std::uint64_t other = fake_cuda_create_context(0);
  fake_cuda_make_current(other);
  CHECK_EQUAL(cuStreamGetCtx(nullptr, &context), CUDA_SUCCESS);
  CHECK_EQUAL(reinterpret_cast<std::uint64_t>(context), other);
  fake_cuda_make_current(0);
  CHECK_EQUAL(cuStreamGetCtx(nullptr, &context), CUDA_ERROR_INVALID_CONTEXT);
  CHECK_EQUAL(cuStreamGetCtx(at_work.s(), &context), CUDA_SUCCESS);
}

TEST("device code is refused when the driver or the device is too old for it") {
  const FrameworkAtWork at_work;
  CUmodule module = nullptr;
  CHECK_EQUAL(cuModuleLoadData(&module, kDeviceCode), CUDA_SUCCESS);
  CHECK_EQUAL(fake_cuda_outstanding("modules"), 1);
  CHECK_EQUAL(cuModuleUnload(module), CUDA_SUCCESS);
  CHECK_EQUAL(cuModuleLoadData(&module, "no device code at all"), CUDA_ERROR_INVALID_PTX);
  CHECK_EQUAL(cuModuleLoadData(&module, ".version 9.9\n.target sm_70\n"), CUDA_ERROR_UNSUPPORTED_PTX_VERSION);
  fake_cuda_set_device_attribute(0, CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR, 6);
  CHECK_EQUAL(cuModuleLoadData(&module, kDeviceCode), 209);
}

// What follows was recorded on physical cards: docs/explanation/fakes.md.

TEST("without a current context only freeing nothing and asking about devices succeed, as on cards") {
  const FrameworkAtWork at_work;
  fake_cuda_make_current(0);
  CUdeviceptr memory = 0;
  void* host = nullptr;
  CUstream stream = nullptr;
  CUevent event = nullptr;
  CUmodule module = nullptr;
  std::size_t limit = 0;
  unsigned long long id = 0;
  CHECK_EQUAL(cuMemAlloc_v2(&memory, 64), CUDA_ERROR_INVALID_CONTEXT);
  CHECK_EQUAL(cuMemHostAlloc(&host, 64, 0), CUDA_ERROR_INVALID_CONTEXT);
  CHECK_EQUAL(cuStreamCreate(&stream, 0), CUDA_ERROR_INVALID_CONTEXT);
  CHECK_EQUAL(cuEventCreate(&event, 0), CUDA_ERROR_INVALID_CONTEXT);
  CHECK_EQUAL(cuModuleLoadData(&module, ""), CUDA_ERROR_INVALID_CONTEXT);
  CHECK_EQUAL(cuCtxSynchronize(), CUDA_ERROR_INVALID_CONTEXT);
  CHECK_EQUAL(cuCtxGetLimit(&limit, 0), CUDA_ERROR_INVALID_CONTEXT);
  CHECK_EQUAL(cuCtxGetId(nullptr, &id), CUDA_ERROR_INVALID_CONTEXT);
  CHECK_EQUAL(cuStreamSynchronize(nullptr), CUDA_ERROR_INVALID_CONTEXT);
  CHECK_EQUAL(cuCtxPopCurrent_v2(nullptr), CUDA_ERROR_INVALID_CONTEXT);
  CHECK_EQUAL(cuCtxGetCurrent(nullptr), CUDA_ERROR_INVALID_VALUE);
  CHECK_EQUAL(cuCtxPushCurrent_v2(nullptr), CUDA_ERROR_INVALID_VALUE);
  CHECK_EQUAL(cuMemFree_v2(0), CUDA_SUCCESS);
  CHECK_EQUAL(cuMemFreeHost(nullptr), CUDA_SUCCESS);
  int count = 0;
  CHECK_EQUAL(cuDeviceGetCount(&count), CUDA_SUCCESS);
  CHECK_EQUAL(cuCtxRecordEvent(nullptr, nullptr), CUDA_ERROR_INVALID_CONTEXT);
  CHECK_EQUAL(cuCtxRecordEvent(at_work.c(), nullptr), CUDA_ERROR_INVALID_HANDLE);
}

TEST("the ids of contexts count up, and none means the current one") {
  const FrameworkAtWork at_work;
  unsigned long long first = 0;
  unsigned long long current = 0;
  unsigned long long second = 0;
  const std::uint64_t other = fake_cuda_create_context(0);
  CHECK_EQUAL(cuCtxGetId(at_work.c(), &first), CUDA_SUCCESS);
  CHECK_EQUAL(cuCtxGetId(nullptr, &current), CUDA_SUCCESS);
  CHECK_EQUAL(cuCtxGetId(reinterpret_cast<CUcontext>(other), &second), CUDA_SUCCESS);
  CHECK(first > 0 && first == current && second > first);
  CHECK_EQUAL(cuCtxGetId(at_work.c(), nullptr), CUDA_ERROR_INVALID_VALUE);
}

TEST("limits that do not exist have another error than those that are not supported") {
  const FrameworkAtWork at_work;
  std::size_t value = 0;
  CHECK_EQUAL(cuCtxGetLimit(&value, CU_LIMIT_PERSISTING_L2_CACHE_SIZE), CUDA_SUCCESS);
  CHECK_EQUAL(cuCtxGetLimit(&value, 9), CUDA_ERROR_UNSUPPORTED_LIMIT);
  for (const CUlimit limit : {10, 256, -1})
    CHECK_EQUAL(cuCtxGetLimit(&value, limit), CUDA_ERROR_INVALID_VALUE);
}

TEST("host memory is registered once, and only memory that is not pinned already") {
  const FrameworkAtWork at_work;
  constexpr int kAlready = 712;
  constexpr int kNotRegistered = 713;
  alignas(4096) static char memory[4 * 4096];
  CHECK_EQUAL(cuMemHostRegister_v2(nullptr, 64, 0), CUDA_ERROR_INVALID_VALUE);
  CHECK_EQUAL(cuMemHostRegister_v2(memory, 0, 0), CUDA_ERROR_INVALID_VALUE);
  CHECK_EQUAL(cuMemHostRegister_v2(memory, 4096, 0x10), CUDA_ERROR_INVALID_VALUE);
  CHECK_EQUAL(cuMemHostRegister_v2(memory + 4096, 4096, 0), CUDA_SUCCESS);
  CHECK_EQUAL(cuMemHostRegister_v2(memory, 8192, 0), kAlready);
  CHECK_EQUAL(cuMemHostRegister_v2(memory + 8191, 4096, 0), kAlready);
  CHECK_EQUAL(cuMemHostUnregister(memory + 4196), CUDA_ERROR_INVALID_VALUE);
  CHECK_EQUAL(cuMemHostUnregister(nullptr), CUDA_ERROR_INVALID_VALUE);
  CHECK_EQUAL(cuMemHostUnregister(memory + 4096), CUDA_SUCCESS);
  CHECK_EQUAL(cuMemHostUnregister(memory + 4096), kNotRegistered);
  void* pinned = nullptr;
  CHECK_EQUAL(cuMemHostAlloc(&pinned, 4096, 0), CUDA_SUCCESS);
  CHECK_EQUAL(cuMemHostRegister_v2(pinned, 4096, 0), CUDA_ERROR_INVALID_VALUE);
  CHECK_EQUAL(cuMemHostUnregister(pinned), CUDA_ERROR_INVALID_VALUE);
  CHECK_EQUAL(cuMemFreeHost(pinned), CUDA_SUCCESS);
}

// CUDA Driver API 13.0, "Peer Context Memory Access": cuDeviceCanAccessPeer gives 1 where contexts of a
// device are capable of accessing memory of contexts of another; cuCtxEnablePeerAccess gives
// CUDA_ERROR_PEER_ACCESS_UNSUPPORTED where it does not, CUDA_ERROR_PEER_ACCESS_ALREADY_ENABLED the second
// time and CUDA_ERROR_INVALID_VALUE for flags, and access is granted in one direction; cuCtxDisablePeerAccess
// gives CUDA_ERROR_PEER_ACCESS_NOT_ENABLED where there was none.
TEST("a context has access to another's memory once it was asked for, where the devices can") {
  const FrameworkAtWork at_work;
  fake_cuda_set_device_count(3);
  fake_cuda_set_peer_link(0, 1, 300e9);
  const auto other = reinterpret_cast<CUcontext>(fake_cuda_activate_primary_context(1));
  const auto apart = reinterpret_cast<CUcontext>(fake_cuda_activate_primary_context(2));
  int can = -1;
  CHECK_EQUAL(cuDeviceCanAccessPeer(&can, 0, 1), CUDA_SUCCESS);
  CHECK_EQUAL(can, 1);
  CHECK_EQUAL(cuDeviceCanAccessPeer(&can, 0, 2), CUDA_SUCCESS);
  CHECK_EQUAL(can, 0);
  CHECK_EQUAL(cuDeviceCanAccessPeer(&can, 0, 3), CUDA_ERROR_INVALID_DEVICE);
  CHECK_EQUAL(cuCtxEnablePeerAccess(apart, 0), CUDA_ERROR_PEER_ACCESS_UNSUPPORTED);
  CHECK_EQUAL(cuCtxEnablePeerAccess(other, 1), CUDA_ERROR_INVALID_VALUE);
  CHECK_EQUAL(cuCtxEnablePeerAccess(at_work.c(), 0), CUDA_ERROR_INVALID_CONTEXT);
  CHECK_EQUAL(cuCtxDisablePeerAccess(other), CUDA_ERROR_PEER_ACCESS_NOT_ENABLED);
  CHECK_EQUAL(cuCtxEnablePeerAccess(other, 0), CUDA_SUCCESS);
  CHECK_EQUAL(cuCtxEnablePeerAccess(other, 0), CUDA_ERROR_PEER_ACCESS_ALREADY_ENABLED);
  CHECK_EQUAL(fake_cuda_outstanding("peer_accesses"), 1);
  CHECK_EQUAL(cuCtxDisablePeerAccess(other), CUDA_SUCCESS);
  CHECK_EQUAL(fake_cuda_outstanding("peer_accesses"), 0);
}

// The same, cuMemcpyPeerAsync: it "copies from device memory in one context to device memory in another
// context", each named with its own; memory of the other or of the host is an invalid value.
TEST("a copy between contexts takes the memory of each, and its bytes arrive") {
  const FrameworkAtWork at_work;
  fake_cuda_set_device_count(2);
  const auto other = reinterpret_cast<CUcontext>(fake_cuda_activate_primary_context(1));
  CUdeviceptr here = 0;
  CUdeviceptr there = 0;
  CHECK_EQUAL(cuMemAlloc_v2(&here, 64), CUDA_SUCCESS);
  CHECK_EQUAL(cuCtxPushCurrent_v2(other), CUDA_SUCCESS);
  CHECK_EQUAL(cuMemAlloc_v2(&there, 64), CUDA_SUCCESS);
  CUcontext popped = nullptr;
  CHECK_EQUAL(cuCtxPopCurrent_v2(&popped), CUDA_SUCCESS);
  CHECK_EQUAL(cuMemsetD32Async(here, 7, 16, at_work.s()), CUDA_SUCCESS);
  CHECK_EQUAL(cuMemcpyPeerAsync(there, other, here, at_work.c(), 64, at_work.s()), CUDA_SUCCESS);
  CHECK_EQUAL(cuMemcpyPeerAsync(there, at_work.c(), here, other, 64, at_work.s()), CUDA_ERROR_INVALID_VALUE);
  CHECK_EQUAL(cuMemcpyPeerAsync(there, nullptr, here, at_work.c(), 64, at_work.s()),
              CUDA_ERROR_INVALID_CONTEXT);
  CHECK_EQUAL(cuStreamSynchronize(at_work.s()), CUDA_SUCCESS);
  std::uint32_t arrived = 0;
  CHECK_EQUAL(cuMemcpyDtoH_v2(&arrived, there + 60, sizeof arrived), CUDA_SUCCESS);
  CHECK_EQUAL(arrived, 7U);
}

TEST_MAIN()
