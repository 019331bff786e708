#pragma once

#include <memory>
#include <string>
#include <utility>

#include "cuda/driver/cuda_error.hpp"
#include "cuda/driver/driver_abi.hpp"
#include "cuda/driver/kept_device_code.hpp"

namespace fairlap::cuda {

class Driver;

// One function of the driver. Calling it throws CudaError on any result but success, or Unavailable when
// this driver does not have it; code_of() returns the result to callers that expect failures.
template <class Pointer>
class DriverFunction {
 public:
  DriverFunction(const Driver& driver, const char* name) : driver_(driver), name_(name) {}

  template <class... Arguments>
  void operator()(Arguments... arguments) const {
    if (const CUresult code = code_of(arguments...); code != CUDA_SUCCESS) fail(code);
  }

  template <class... Arguments>
  [[nodiscard]] CUresult code_of(Arguments... arguments) const {
    if (pointer_ == nullptr) throw Unavailable(absent_because_);
    return pointer_(arguments...);
  }

  [[noreturn]] void fail(CUresult code) const;

  [[nodiscard]] bool present() const noexcept { return pointer_ != nullptr; }
  [[nodiscard]] const std::string& absent_because() const noexcept { return absent_because_; }
  [[nodiscard]] const char* name() const noexcept { return name_; }

 private:
  friend class Driver;

  const Driver& driver_;
  const char* name_;
  Pointer pointer_ = nullptr;
  std::string absent_because_;
};

// Every function used, and the CUDA release in which this form of it appeared. The version is asked for
// explicitly, because a driver answers a bare name with whatever form is the newest.
// FORM(member, exported name, release, is it required)
#define FAIRLAP_DRIVER_FUNCTIONS(FORM)                                                     \
  FORM(cuInit, cuInit, 2000, true)                                                         \
  FORM(cuDriverGetVersion, cuDriverGetVersion, 2020, true)                                 \
  FORM(cuGetErrorName, cuGetErrorName, 6000, true)                                         \
  FORM(cuGetErrorString, cuGetErrorString, 6000, true)                                     \
  FORM(cuDeviceGet, cuDeviceGet, 2000, true)                                               \
  FORM(cuDeviceGetCount, cuDeviceGetCount, 2000, true)                                     \
  FORM(cuDeviceGetName, cuDeviceGetName, 2000, true)                                       \
  FORM(cuDeviceGetPCIBusId, cuDeviceGetPCIBusId, 4010, true)                               \
  FORM(cuDeviceGetUuid, cuDeviceGetUuid_v2, 11040, false)                                  \
  FORM(cuDeviceGetAttribute, cuDeviceGetAttribute, 2000, true)                             \
  FORM(cuDeviceCanAccessPeer, cuDeviceCanAccessPeer, 4000, false)                          \
  FORM(cuDevicePrimaryCtxGetState, cuDevicePrimaryCtxGetState, 7000, true)                 \
  FORM(cuDevicePrimaryCtxRetain, cuDevicePrimaryCtxRetain, 7000, true)                     \
  FORM(cuDevicePrimaryCtxRelease, cuDevicePrimaryCtxRelease_v2, 11000, true)               \
  FORM(cuCtxGetCurrent, cuCtxGetCurrent, 4000, true)                                       \
  FORM(cuCtxPushCurrent, cuCtxPushCurrent_v2, 4000, true)                                  \
  FORM(cuCtxPopCurrent, cuCtxPopCurrent_v2, 4000, true)                                    \
  FORM(cuCtxGetDevice, cuCtxGetDevice, 2000, true)                                         \
  FORM(cuCtxGetId, cuCtxGetId, 12000, false)                                               \
  FORM(cuCtxSynchronize, cuCtxSynchronize, 2000, true)                                     \
  FORM(cuCtxGetLimit, cuCtxGetLimit, 3010, true)                                           \
  FORM(cuCtxResetPersistingL2Cache, cuCtxResetPersistingL2Cache, 11000, false)             \
  FORM(cuCtxRecordEvent, cuCtxRecordEvent, 12050, false)                                   \
  FORM(cuCtxEnablePeerAccess, cuCtxEnablePeerAccess, 4000, false)                          \
  FORM(cuCtxDisablePeerAccess, cuCtxDisablePeerAccess, 4000, false)                        \
  FORM(cuStreamCreate, cuStreamCreate, 2000, true)                                         \
  FORM(cuStreamDestroy, cuStreamDestroy_v2, 4000, true)                                    \
  FORM(cuStreamGetCtx, cuStreamGetCtx, 9020, true)                                         \
  FORM(cuStreamIsCapturing, cuStreamIsCapturing, 10000, true)                              \
  FORM(cuStreamSynchronize, cuStreamSynchronize, 2000, true)                               \
  FORM(cuStreamWaitEvent, cuStreamWaitEvent, 3020, true)                                   \
  FORM(cuStreamWaitValue32, cuStreamWaitValue32_v2, 11070, false)                          \
  FORM(cuStreamBeginCapture, cuStreamBeginCapture_v2, 10010, false)                        \
  FORM(cuStreamEndCapture, cuStreamEndCapture, 10000, false)                               \
  FORM(cuThreadExchangeStreamCaptureMode, cuThreadExchangeStreamCaptureMode, 10010, false) \
  FORM(cuEventCreate, cuEventCreate, 2000, true)                                           \
  FORM(cuEventDestroy, cuEventDestroy_v2, 4000, true)                                      \
  FORM(cuEventRecord, cuEventRecord, 2000, true)                                           \
  FORM(cuEventQuery, cuEventQuery, 2000, true)                                             \
  FORM(cuEventElapsedTime, cuEventElapsedTime, 2000, true)                                 \
  FORM(cuMemAlloc, cuMemAlloc_v2, 3020, true)                                              \
  FORM(cuMemFree, cuMemFree_v2, 3020, true)                                                \
  FORM(cuMemGetInfo, cuMemGetInfo_v2, 3020, true)                                          \
  FORM(cuMemsetD32Async, cuMemsetD32Async, 3020, true)                                     \
  FORM(cuMemHostAlloc, cuMemHostAlloc, 2020, true)                                         \
  FORM(cuMemFreeHost, cuMemFreeHost, 2000, true)                                           \
  FORM(cuMemHostGetDevicePointer, cuMemHostGetDevicePointer_v2, 3020, true)                \
  FORM(cuMemHostRegister, cuMemHostRegister_v2, 6050, true)                                \
  FORM(cuMemHostUnregister, cuMemHostUnregister, 4000, true)                               \
  FORM(cuMemcpyHtoDAsync, cuMemcpyHtoDAsync_v2, 3020, true)                                \
  FORM(cuMemcpyDtoHAsync, cuMemcpyDtoHAsync_v2, 3020, true)                                \
  FORM(cuMemcpyDtoDAsync, cuMemcpyDtoDAsync_v2, 3020, true)                                \
  FORM(cuMemcpyPeerAsync, cuMemcpyPeerAsync, 4000, false)                                  \
  FORM(cuIpcGetMemHandle, cuIpcGetMemHandle, 4010, false)                                  \
  FORM(cuIpcOpenMemHandle, cuIpcOpenMemHandle_v2, 11000, false)                            \
  FORM(cuIpcCloseMemHandle, cuIpcCloseMemHandle, 4010, false)                              \
  FORM(cuModuleLoadData, cuModuleLoadData, 2000, true)                                     \
  FORM(cuModuleUnload, cuModuleUnload, 2000, true)                                         \
  FORM(cuModuleGetFunction, cuModuleGetFunction, 2000, true)                               \
  FORM(cuFuncSetAttribute, cuFuncSetAttribute, 9000, true)                                 \
  FORM(cuLaunchKernel, cuLaunchKernel, 4000, true)                                         \
  FORM(cuGraphInstantiateWithFlags, cuGraphInstantiateWithFlags, 11040, false)             \
  FORM(cuGraphUpload, cuGraphUpload, 11010, false)                                         \
  FORM(cuGraphLaunch, cuGraphLaunch, 10000, false)                                         \
  FORM(cuGraphGetNodes, cuGraphGetNodes, 10000, false)                                     \
  FORM(cuGraphExecDestroy, cuGraphExecDestroy, 10000, false)                               \
  FORM(cuGraphDestroy, cuGraphDestroy, 10000, false)

// The driver library of this machine. Absence is an ordinary answer with a reason, never an exception.
class Driver {
 public:
  struct Opened {
    std::unique_ptr<const Driver> driver;  // null when absent
    std::string absent_because;
  };

  // Looks in FAIRLAP_LIBCUDA first, then for libcuda.so.1. Initialises nothing but the driver itself.
  static Opened open();

  // The driver of this process, opened once; throws Unavailable with the reason, or when the process is
  // a forked child, in which CUDA cannot work.
  static const Driver& of_this_process();
  static std::string absent_because();  // empty when there is a driver

  Driver(const Driver&) = delete;  // Its functions refer back to it for the texts of errors.
  Driver& operator=(const Driver&) = delete;

  [[nodiscard]] int version() const noexcept { return version_; }
  [[nodiscard]] const std::string& path() const noexcept { return path_; }
  [[nodiscard]] CudaError error(const char* function, CUresult code) const;
  [[nodiscard]] KeptDeviceCode& kept_device_code() const noexcept { return kept_device_code_; }

// NOLINTBEGIN(bugprone-macro-parentheses): the argument is a member's name.
#define FAIRLAP_MEMBER(member, exported, release, required) \
  DriverFunction<PFN_##exported> member{*this, #member};
  FAIRLAP_DRIVER_FUNCTIONS(FAIRLAP_MEMBER)
#undef FAIRLAP_MEMBER
  // NOLINTEND(bugprone-macro-parentheses)

 private:
  Driver() = default;

  int version_ = 0;
  std::string path_;
  mutable KeptDeviceCode kept_device_code_;
};

template <class Pointer>
void DriverFunction<Pointer>::fail(CUresult code) const {
  throw driver_.error(name_, code);
}

}  // namespace fairlap::cuda
