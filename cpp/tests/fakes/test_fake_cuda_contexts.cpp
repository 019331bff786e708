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

TEST_MAIN()
