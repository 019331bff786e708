#include <string>
#include <vector>

#include "fakes/cuda/entry.hpp"
#include "fakes/cuda/exports.hpp"

// Lookup by name and version, as the real driver does it: the newest form of the function that is not
// newer than the release asked for, out of those that this driver has.
namespace fairlap::fakes {
namespace {

struct Form {
  std::string base;
  int release;    // of CUDA in which this form appeared
  void* address;  // null: a form that exists but is not modelled, a trap for a wrong release number
};

template <class Function>
void* address_of(Function* function) {
  return reinterpret_cast<void*>(function);
}

// Compiles only when the fake's function has the very type that the engine calls it by.
template <class Declared>
void* checked(Declared function) {
  return reinterpret_cast<void*>(function);
}

#define SHARED(base, release, function) {#base, release, checked<PFN_##function>(&fairlap::cuda::function)}
#define OWN(base, release, function) {#base, release, address_of(&fairlap::cuda::function)}
#define NOT_MODELLED(base, release) {#base, release, nullptr}

const std::vector<Form>& forms() {
  static const std::vector<Form> all = {
      SHARED(cuGetProcAddress, 11030, cuGetProcAddress),
      SHARED(cuGetProcAddress, 12000, cuGetProcAddress_v2),
      SHARED(cuInit, 2000, cuInit),
      SHARED(cuDriverGetVersion, 2020, cuDriverGetVersion),
      SHARED(cuGetErrorName, 6000, cuGetErrorName),
      SHARED(cuGetErrorString, 6000, cuGetErrorString),
      SHARED(cuDeviceGet, 2000, cuDeviceGet),
      SHARED(cuDeviceGetCount, 2000, cuDeviceGetCount),
      SHARED(cuDeviceGetName, 2000, cuDeviceGetName),
      SHARED(cuDeviceGetPCIBusId, 4010, cuDeviceGetPCIBusId),
      NOT_MODELLED(cuDeviceGetUuid, 9020),
      SHARED(cuDeviceGetUuid, 11040, cuDeviceGetUuid_v2),
      SHARED(cuDeviceGetAttribute, 2000, cuDeviceGetAttribute),
      SHARED(cuDeviceCanAccessPeer, 4000, cuDeviceCanAccessPeer),
      SHARED(cuDevicePrimaryCtxGetState, 7000, cuDevicePrimaryCtxGetState),
      SHARED(cuDevicePrimaryCtxRetain, 7000, cuDevicePrimaryCtxRetain),
      NOT_MODELLED(cuDevicePrimaryCtxRelease, 7000),
      SHARED(cuDevicePrimaryCtxRelease, 11000, cuDevicePrimaryCtxRelease_v2),
      SHARED(cuCtxGetCurrent, 4000, cuCtxGetCurrent),
      NOT_MODELLED(cuCtxPushCurrent, 2000),
      SHARED(cuCtxPushCurrent, 4000, cuCtxPushCurrent_v2),
      NOT_MODELLED(cuCtxPopCurrent, 2000),
      SHARED(cuCtxPopCurrent, 4000, cuCtxPopCurrent_v2),
      SHARED(cuCtxGetDevice, 2000, cuCtxGetDevice),
      NOT_MODELLED(cuCtxGetDevice, 13000),
      SHARED(cuCtxGetId, 12000, cuCtxGetId),
      SHARED(cuCtxGetLimit, 3010, cuCtxGetLimit),
      SHARED(cuCtxResetPersistingL2Cache, 11000, cuCtxResetPersistingL2Cache),
      SHARED(cuCtxSynchronize, 2000, cuCtxSynchronize),
      NOT_MODELLED(cuCtxSynchronize, 13000),
      SHARED(cuCtxRecordEvent, 12050, cuCtxRecordEvent),
      OWN(cuCtxWaitEvent, 12050, cuCtxWaitEvent),
      SHARED(cuCtxEnablePeerAccess, 4000, cuCtxEnablePeerAccess),
      SHARED(cuCtxDisablePeerAccess, 4000, cuCtxDisablePeerAccess),
      SHARED(cuStreamCreate, 2000, cuStreamCreate),
      NOT_MODELLED(cuStreamDestroy, 2000),
      SHARED(cuStreamDestroy, 4000, cuStreamDestroy_v2),
      SHARED(cuStreamGetCtx, 9020, cuStreamGetCtx),
      NOT_MODELLED(cuStreamGetCtx, 12050),
      OWN(cuStreamQuery, 2000, cuStreamQuery),
      SHARED(cuStreamSynchronize, 2000, cuStreamSynchronize),
      SHARED(cuStreamWaitEvent, 3020, cuStreamWaitEvent),
      NOT_MODELLED(cuStreamWaitValue32, 8000),
      SHARED(cuStreamWaitValue32, 11070, cuStreamWaitValue32_v2),
      NOT_MODELLED(cuStreamWriteValue32, 8000),
      OWN(cuStreamWriteValue32, 11070, cuStreamWriteValue32_v2),
      NOT_MODELLED(cuStreamBeginCapture, 10000),
      SHARED(cuStreamBeginCapture, 10010, cuStreamBeginCapture_v2),
      SHARED(cuStreamEndCapture, 10000, cuStreamEndCapture),
      SHARED(cuThreadExchangeStreamCaptureMode, 10010, cuThreadExchangeStreamCaptureMode),
      SHARED(cuStreamIsCapturing, 10000, cuStreamIsCapturing),
      SHARED(cuEventCreate, 2000, cuEventCreate),
      NOT_MODELLED(cuEventDestroy, 2000),
      SHARED(cuEventDestroy, 4000, cuEventDestroy_v2),
      SHARED(cuEventRecord, 2000, cuEventRecord),
      SHARED(cuEventQuery, 2000, cuEventQuery),
      OWN(cuEventSynchronize, 2000, cuEventSynchronize),
      SHARED(cuEventElapsedTime, 2000, cuEventElapsedTime),
      OWN(cuEventElapsedTime, 12080, cuEventElapsedTime_v2),
      NOT_MODELLED(cuMemAlloc, 2000),
      SHARED(cuMemAlloc, 3020, cuMemAlloc_v2),
      NOT_MODELLED(cuMemFree, 2000),
      SHARED(cuMemFree, 3020, cuMemFree_v2),
      NOT_MODELLED(cuMemGetInfo, 2000),
      SHARED(cuMemGetInfo, 3020, cuMemGetInfo_v2),
      SHARED(cuMemHostAlloc, 2020, cuMemHostAlloc),
      SHARED(cuMemFreeHost, 2000, cuMemFreeHost),
      NOT_MODELLED(cuMemHostRegister, 4000),
      SHARED(cuMemHostRegister, 6050, cuMemHostRegister_v2),
      SHARED(cuMemHostUnregister, 4000, cuMemHostUnregister),
      NOT_MODELLED(cuMemHostGetDevicePointer, 2020),
      SHARED(cuMemHostGetDevicePointer, 3020, cuMemHostGetDevicePointer_v2),
      SHARED(cuMemsetD32Async, 3020, cuMemsetD32Async),
      NOT_MODELLED(cuMemcpyHtoDAsync, 2000),
      SHARED(cuMemcpyHtoDAsync, 3020, cuMemcpyHtoDAsync_v2),
      NOT_MODELLED(cuMemcpyDtoHAsync, 2000),
      SHARED(cuMemcpyDtoHAsync, 3020, cuMemcpyDtoHAsync_v2),
      NOT_MODELLED(cuMemcpyDtoDAsync, 3000),
      SHARED(cuMemcpyDtoDAsync, 3020, cuMemcpyDtoDAsync_v2),
      SHARED(cuMemcpyPeerAsync, 4000, cuMemcpyPeerAsync),
      NOT_MODELLED(cuMemcpyDtoH, 2000),
      OWN(cuMemcpyDtoH, 3020, cuMemcpyDtoH_v2),
      SHARED(cuIpcGetMemHandle, 4010, cuIpcGetMemHandle),
      NOT_MODELLED(cuIpcOpenMemHandle, 4010),
      SHARED(cuIpcOpenMemHandle, 11000, cuIpcOpenMemHandle_v2),
      SHARED(cuIpcCloseMemHandle, 4010, cuIpcCloseMemHandle),
      SHARED(cuModuleLoadData, 2000, cuModuleLoadData),
      SHARED(cuModuleUnload, 2000, cuModuleUnload),
      SHARED(cuModuleGetFunction, 2000, cuModuleGetFunction),
      SHARED(cuFuncSetAttribute, 9000, cuFuncSetAttribute),
      SHARED(cuLaunchKernel, 4000, cuLaunchKernel),
      SHARED(cuGraphInstantiateWithFlags, 11040, cuGraphInstantiateWithFlags),
      SHARED(cuGraphUpload, 11010, cuGraphUpload),
      SHARED(cuGraphLaunch, 10000, cuGraphLaunch),
      SHARED(cuGraphGetNodes, 10000, cuGraphGetNodes),
      SHARED(cuGraphExecDestroy, 10000, cuGraphExecDestroy),
      SHARED(cuGraphDestroy, 10000, cuGraphDestroy),
  };
  return all;
}

#undef SHARED
#undef OWN
#undef NOT_MODELLED

CUdriverProcAddressQueryResult find(const World& w, const std::string& base, int release, void** address) {
  *address = nullptr;
  if (w.hidden_functions.contains(base)) return CU_GET_PROC_ADDRESS_SYMBOL_NOT_FOUND;
  CUdriverProcAddressQueryResult status = CU_GET_PROC_ADDRESS_SYMBOL_NOT_FOUND;
  int newest = 0;
  for (const Form& form : forms()) {
    if (form.base != base || form.release > w.driver_version) continue;
    if (status == CU_GET_PROC_ADDRESS_SYMBOL_NOT_FOUND) status = CU_GET_PROC_ADDRESS_VERSION_NOT_SUFFICIENT;
    if (form.release > release || form.release < newest) continue;
    newest = form.release;
    *address = form.address;
    status =
        form.address == nullptr ? CU_GET_PROC_ADDRESS_VERSION_NOT_SUFFICIENT : CU_GET_PROC_ADDRESS_SUCCESS;
  }
  return status;
}

constexpr std::uint64_t kKnownFlags = 3;
constexpr std::uint64_t kPerThreadDefaultStream = 2;

CUresult look_up(const World& w, const char* symbol, void** address, int release, std::uint64_t flags,
                 CUdriverProcAddressQueryResult& status) {
  if (symbol == nullptr || address == nullptr || (flags & ~kKnownFlags) != 0) return CUDA_ERROR_INVALID_VALUE;
  if ((flags & kPerThreadDefaultStream) != 0) return CUDA_ERROR_NOT_SUPPORTED;  // forms that are not modelled
  if (release > w.driver_version) return CUDA_ERROR_INVALID_VALUE;
  status = find(w, symbol, release, address);
  return CUDA_SUCCESS;
}

}  // namespace

FAKE_EXPORT CUresult cuGetProcAddress(const char* symbol, void** address, int release, std::uint64_t flags) {
  return entry("cuGetProcAddress", Needs::nothing, [&](World& w, Lock&) -> CUresult {
    CUdriverProcAddressQueryResult status = CU_GET_PROC_ADDRESS_SYMBOL_NOT_FOUND;
    if (const CUresult error = look_up(w, symbol, address, release, flags, status); error != CUDA_SUCCESS)
      return error;
    // The form of CUDA 11.3 has no status to give.
    return status == CU_GET_PROC_ADDRESS_SUCCESS ? CUDA_SUCCESS : CUDA_ERROR_NOT_FOUND;
  });
}

FAKE_EXPORT CUresult cuGetProcAddress_v2(const char* symbol, void** address, int release, std::uint64_t flags,
                                         CUdriverProcAddressQueryResult* symbol_status) {
  return entry("cuGetProcAddress_v2", Needs::nothing, [&](World& w, Lock&) -> CUresult {
    CUdriverProcAddressQueryResult status = CU_GET_PROC_ADDRESS_SYMBOL_NOT_FOUND;
    const CUresult result = look_up(w, symbol, address, release, flags, status);
    if (symbol_status != nullptr && result == CUDA_SUCCESS) *symbol_status = status;
    return result;
  });
}

}  // namespace fairlap::fakes
