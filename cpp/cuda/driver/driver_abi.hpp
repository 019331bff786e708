#pragma once

// The part of the driver's binary interface that the engine uses, declared by ourselves so that no CUDA
// header is needed to build. A conformance test compares every line with NVIDIA's headers. Names are
// NVIDIA's, except for constants that those headers make macros of; they are marked.

#include <cstddef>
#include <cstdint>

namespace fairlap::cuda {

using CUresult = int;
using CUdevice = int;
using CUdeviceptr = unsigned long long;
using CUcontext = struct CUctx_st*;
using CUstream = struct CUstream_st*;
using CUevent = struct CUevent_st*;
using CUmodule = struct CUmod_st*;
using CUfunction = struct CUfunc_st*;
using CUgraph = struct CUgraph_st*;
using CUgraphNode = struct CUgraphNode_st*;
using CUgraphExec = struct CUgraphExec_st*;
using CUdevice_attribute = int;
using CUlimit = int;
using CUfunction_attribute = int;
struct CUuuid {
  char bytes[16];
};
struct CUipcMemHandle {
  char reserved[64];
};
using CUstreamCaptureStatus = int;
using CUstreamCaptureMode = int;
using CUdriverProcAddressQueryResult = int;

constexpr CUresult CUDA_SUCCESS = 0;
constexpr CUresult CUDA_ERROR_INVALID_VALUE = 1;
constexpr CUresult CUDA_ERROR_OUT_OF_MEMORY = 2;
constexpr CUresult CUDA_ERROR_NOT_INITIALIZED = 3;
constexpr CUresult CUDA_ERROR_DEINITIALIZED = 4;
constexpr CUresult CUDA_ERROR_STUB_LIBRARY = 34;
constexpr CUresult CUDA_ERROR_NO_DEVICE = 100;
constexpr CUresult CUDA_ERROR_INVALID_DEVICE = 101;
constexpr CUresult CUDA_ERROR_INVALID_CONTEXT = 201;
constexpr CUresult CUDA_ERROR_ECC_UNCORRECTABLE = 214;
constexpr CUresult CUDA_ERROR_UNSUPPORTED_LIMIT = 215;
constexpr CUresult CUDA_ERROR_PEER_ACCESS_UNSUPPORTED = 217;
constexpr CUresult CUDA_ERROR_INVALID_PTX = 218;
constexpr CUresult CUDA_ERROR_UNSUPPORTED_PTX_VERSION = 222;
// abi-since: 12080
constexpr CUresult CUDA_ERROR_CONTAINED = 226;
constexpr CUresult CUDA_ERROR_INVALID_HANDLE = 400;
constexpr CUresult CUDA_ERROR_NOT_FOUND = 500;
constexpr CUresult CUDA_ERROR_NOT_READY = 600;
constexpr CUresult CUDA_ERROR_ILLEGAL_ADDRESS = 700;
constexpr CUresult CUDA_ERROR_LAUNCH_OUT_OF_RESOURCES = 701;
constexpr CUresult CUDA_ERROR_LAUNCH_TIMEOUT = 702;
constexpr CUresult CUDA_ERROR_PEER_ACCESS_ALREADY_ENABLED = 704;
constexpr CUresult CUDA_ERROR_PEER_ACCESS_NOT_ENABLED = 705;
constexpr CUresult CUDA_ERROR_CONTEXT_IS_DESTROYED = 709;
constexpr CUresult CUDA_ERROR_ASSERT = 710;
constexpr CUresult CUDA_ERROR_HARDWARE_STACK_ERROR = 714;
constexpr CUresult CUDA_ERROR_ILLEGAL_INSTRUCTION = 715;
constexpr CUresult CUDA_ERROR_MISALIGNED_ADDRESS = 716;
constexpr CUresult CUDA_ERROR_INVALID_ADDRESS_SPACE = 717;
constexpr CUresult CUDA_ERROR_INVALID_PC = 718;
constexpr CUresult CUDA_ERROR_LAUNCH_FAILED = 719;
// abi-since: 12080
constexpr CUresult CUDA_ERROR_TENSOR_MEMORY_LEAK = 721;
constexpr CUresult CUDA_ERROR_NOT_PERMITTED = 800;
constexpr CUresult CUDA_ERROR_NOT_SUPPORTED = 801;
constexpr CUresult CUDA_ERROR_SYSTEM_DRIVER_MISMATCH = 803;
constexpr CUresult CUDA_ERROR_MPS_CLIENT_TERMINATED = 810;
constexpr CUresult CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED = 900;
constexpr CUresult CUDA_ERROR_STREAM_CAPTURE_INVALIDATED = 901;
constexpr CUresult CUDA_ERROR_STREAM_CAPTURE_MERGE = 902;
constexpr CUresult CUDA_ERROR_STREAM_CAPTURE_UNMATCHED = 903;
constexpr CUresult CUDA_ERROR_STREAM_CAPTURE_UNJOINED = 904;
constexpr CUresult CUDA_ERROR_STREAM_CAPTURE_ISOLATION = 905;
constexpr CUresult CUDA_ERROR_STREAM_CAPTURE_IMPLICIT = 906;
constexpr CUresult CUDA_ERROR_CAPTURED_EVENT = 907;
constexpr CUresult CUDA_ERROR_STREAM_CAPTURE_WRONG_THREAD = 908;
constexpr CUresult CUDA_ERROR_EXTERNAL_DEVICE = 911;
constexpr CUresult CUDA_ERROR_UNKNOWN = 999;

constexpr CUdevice_attribute CU_DEVICE_ATTRIBUTE_CLOCK_RATE = 13;
constexpr CUdevice_attribute CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT = 16;
constexpr CUdevice_attribute CU_DEVICE_ATTRIBUTE_CAN_MAP_HOST_MEMORY = 19;
constexpr CUdevice_attribute CU_DEVICE_ATTRIBUTE_COMPUTE_MODE = 20;
constexpr CUdevice_attribute CU_DEVICE_ATTRIBUTE_L2_CACHE_SIZE = 38;
constexpr CUdevice_attribute CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR = 75;
constexpr CUdevice_attribute CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR = 76;
constexpr CUdevice_attribute CU_DEVICE_ATTRIBUTE_CAN_USE_STREAM_MEM_OPS_V1 = 92;
constexpr CUdevice_attribute CU_DEVICE_ATTRIBUTE_MAX_PERSISTING_L2_CACHE_SIZE = 108;

constexpr CUlimit CU_LIMIT_PERSISTING_L2_CACHE_SIZE = 6;
constexpr CUfunction_attribute CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES = 8;

constexpr unsigned int CU_STREAM_NON_BLOCKING = 1;
constexpr unsigned int CU_STREAM_WAIT_VALUE_GEQ = 0;
constexpr unsigned int CU_EVENT_DEFAULT = 0;
constexpr unsigned int CU_EVENT_DISABLE_TIMING = 2;

// abi-macro: CU_STREAM_LEGACY
constexpr std::uintptr_t STREAM_LEGACY = 1;
// abi-macro: CU_STREAM_PER_THREAD
constexpr std::uintptr_t STREAM_PER_THREAD = 2;
// abi-macro: CU_MEMHOSTALLOC_PORTABLE
constexpr unsigned int MEMHOSTALLOC_PORTABLE = 1;
// abi-macro: CU_MEMHOSTALLOC_DEVICEMAP
constexpr unsigned int MEMHOSTALLOC_DEVICEMAP = 2;
// abi-macro: CU_MEMHOSTREGISTER_PORTABLE
constexpr unsigned int MEMHOSTREGISTER_PORTABLE = 1;

constexpr CUstreamCaptureStatus CU_STREAM_CAPTURE_STATUS_NONE = 0;
constexpr CUstreamCaptureStatus CU_STREAM_CAPTURE_STATUS_ACTIVE = 1;
constexpr CUstreamCaptureStatus CU_STREAM_CAPTURE_STATUS_INVALIDATED = 2;
constexpr CUstreamCaptureMode CU_STREAM_CAPTURE_MODE_RELAXED = 2;

constexpr std::uint64_t CU_GET_PROC_ADDRESS_LEGACY_STREAM = 1;
constexpr CUdriverProcAddressQueryResult CU_GET_PROC_ADDRESS_SUCCESS = 0;
constexpr CUdriverProcAddressQueryResult CU_GET_PROC_ADDRESS_SYMBOL_NOT_FOUND = 1;
constexpr CUdriverProcAddressQueryResult CU_GET_PROC_ADDRESS_VERSION_NOT_SUFFICIENT = 2;

using PFN_cuGetProcAddress = CUresult (*)(const char*, void**, int, std::uint64_t);
using PFN_cuGetProcAddress_v2 = CUresult (*)(const char*, void**, int, std::uint64_t,
                                             CUdriverProcAddressQueryResult*);

using PFN_cuInit = CUresult (*)(unsigned int);
using PFN_cuDriverGetVersion = CUresult (*)(int*);
using PFN_cuGetErrorName = CUresult (*)(CUresult, const char**);
using PFN_cuGetErrorString = CUresult (*)(CUresult, const char**);

using PFN_cuDeviceGet = CUresult (*)(CUdevice*, int);
using PFN_cuDeviceGetCount = CUresult (*)(int*);
using PFN_cuDeviceGetName = CUresult (*)(char*, int, CUdevice);
using PFN_cuDeviceGetPCIBusId = CUresult (*)(char*, int, CUdevice);
using PFN_cuDeviceGetUuid_v2 = CUresult (*)(CUuuid*, CUdevice);
using PFN_cuDeviceGetAttribute = CUresult (*)(int*, CUdevice_attribute, CUdevice);
using PFN_cuDeviceCanAccessPeer = CUresult (*)(int*, CUdevice, CUdevice);
using PFN_cuDevicePrimaryCtxGetState = CUresult (*)(CUdevice, unsigned int*, int*);
using PFN_cuDevicePrimaryCtxRetain = CUresult (*)(CUcontext*, CUdevice);
using PFN_cuDevicePrimaryCtxRelease_v2 = CUresult (*)(CUdevice);

using PFN_cuCtxGetCurrent = CUresult (*)(CUcontext*);
using PFN_cuCtxPushCurrent_v2 = CUresult (*)(CUcontext);
using PFN_cuCtxPopCurrent_v2 = CUresult (*)(CUcontext*);
using PFN_cuCtxGetDevice = CUresult (*)(CUdevice*);
using PFN_cuCtxGetId = CUresult (*)(CUcontext, unsigned long long*);
using PFN_cuCtxSynchronize = CUresult (*)();
using PFN_cuCtxGetLimit = CUresult (*)(std::size_t*, CUlimit);
using PFN_cuCtxResetPersistingL2Cache = CUresult (*)();
using PFN_cuCtxRecordEvent = CUresult (*)(CUcontext, CUevent);
using PFN_cuCtxEnablePeerAccess = CUresult (*)(CUcontext, unsigned int);
using PFN_cuCtxDisablePeerAccess = CUresult (*)(CUcontext);

using PFN_cuStreamCreate = CUresult (*)(CUstream*, unsigned int);
using PFN_cuStreamDestroy_v2 = CUresult (*)(CUstream);
using PFN_cuStreamGetCtx = CUresult (*)(CUstream, CUcontext*);
using PFN_cuStreamIsCapturing = CUresult (*)(CUstream, CUstreamCaptureStatus*);
using PFN_cuStreamSynchronize = CUresult (*)(CUstream);
using PFN_cuStreamWaitEvent = CUresult (*)(CUstream, CUevent, unsigned int);
using PFN_cuStreamWaitValue32_v2 = CUresult (*)(CUstream, CUdeviceptr, std::uint32_t, unsigned int);
using PFN_cuStreamBeginCapture_v2 = CUresult (*)(CUstream, CUstreamCaptureMode);
using PFN_cuStreamEndCapture = CUresult (*)(CUstream, CUgraph*);
using PFN_cuThreadExchangeStreamCaptureMode = CUresult (*)(CUstreamCaptureMode*);

using PFN_cuEventCreate = CUresult (*)(CUevent*, unsigned int);
using PFN_cuEventDestroy_v2 = CUresult (*)(CUevent);
using PFN_cuEventRecord = CUresult (*)(CUevent, CUstream);
using PFN_cuEventQuery = CUresult (*)(CUevent);
using PFN_cuEventElapsedTime = CUresult (*)(float*, CUevent, CUevent);

using PFN_cuMemAlloc_v2 = CUresult (*)(CUdeviceptr*, std::size_t);
using PFN_cuMemGetInfo_v2 = CUresult (*)(std::size_t*, std::size_t*);
using PFN_cuMemFree_v2 = CUresult (*)(CUdeviceptr);
using PFN_cuMemsetD32Async = CUresult (*)(CUdeviceptr, unsigned int, std::size_t, CUstream);
using PFN_cuMemHostAlloc = CUresult (*)(void**, std::size_t, unsigned int);
using PFN_cuMemFreeHost = CUresult (*)(void*);
using PFN_cuMemHostGetDevicePointer_v2 = CUresult (*)(CUdeviceptr*, void*, unsigned int);
using PFN_cuMemHostRegister_v2 = CUresult (*)(void*, std::size_t, unsigned int);
using PFN_cuMemHostUnregister = CUresult (*)(void*);
using PFN_cuMemcpyHtoDAsync_v2 = CUresult (*)(CUdeviceptr, const void*, std::size_t, CUstream);
using PFN_cuMemcpyDtoHAsync_v2 = CUresult (*)(void*, CUdeviceptr, std::size_t, CUstream);
using PFN_cuMemcpyDtoDAsync_v2 = CUresult (*)(CUdeviceptr, CUdeviceptr, std::size_t, CUstream);
using PFN_cuMemcpyPeerAsync = CUresult (*)(CUdeviceptr, CUcontext, CUdeviceptr, CUcontext, std::size_t,
                                           CUstream);

using PFN_cuIpcGetMemHandle = CUresult (*)(CUipcMemHandle*, CUdeviceptr);
using PFN_cuIpcOpenMemHandle_v2 = CUresult (*)(CUdeviceptr*, CUipcMemHandle, unsigned int);
using PFN_cuIpcCloseMemHandle = CUresult (*)(CUdeviceptr);

using PFN_cuModuleLoadData = CUresult (*)(CUmodule*, const void*);
using PFN_cuModuleUnload = CUresult (*)(CUmodule);
using PFN_cuModuleGetFunction = CUresult (*)(CUfunction*, CUmodule, const char*);
using PFN_cuFuncSetAttribute = CUresult (*)(CUfunction, CUfunction_attribute, int);
using PFN_cuLaunchKernel = CUresult (*)(CUfunction, unsigned int, unsigned int, unsigned int, unsigned int,
                                        unsigned int, unsigned int, unsigned int, CUstream, void**, void**);

using PFN_cuGraphInstantiateWithFlags = CUresult (*)(CUgraphExec*, CUgraph, unsigned long long);
using PFN_cuGraphUpload = CUresult (*)(CUgraphExec, CUstream);
using PFN_cuGraphLaunch = CUresult (*)(CUgraphExec, CUstream);
using PFN_cuGraphGetNodes = CUresult (*)(CUgraph, CUgraphNode*, std::size_t*);
using PFN_cuGraphExecDestroy = CUresult (*)(CUgraphExec);
using PFN_cuGraphDestroy = CUresult (*)(CUgraph);

}  // namespace fairlap::cuda
