#pragma once

// The part of CUPTI's binary interface that the engine uses. Records grow at their end from release to
// release, so each is declared up to the last field that is read, and only the library itself walks
// from one record to the next. A conformance test compares every offset with NVIDIA's headers.

#include <cstddef>
#include <cstdint>

#include "cuda/driver/driver_abi.hpp"

namespace fairlap::cuda {

using CUptiResult = int;
using CUpti_ActivityKind = int;
using CUpti_SubscriberHandle = struct CUpti_Subscriber_st*;
using CUpti_CallbackDomain = int;
using CUpti_ApiCallbackSite = int;

constexpr CUptiResult CUPTI_SUCCESS = 0;
constexpr CUptiResult CUPTI_ERROR_INVALID_PARAMETER = 1;
constexpr CUptiResult CUPTI_ERROR_MAX_LIMIT_REACHED = 12;
constexpr CUptiResult CUPTI_ERROR_NOT_COMPATIBLE = 14;
constexpr CUptiResult CUPTI_ERROR_NOT_INITIALIZED = 15;
constexpr CUptiResult CUPTI_ERROR_INVALID_KIND = 21;
constexpr CUptiResult CUPTI_ERROR_NOT_SUPPORTED = 27;
constexpr CUptiResult CUPTI_ERROR_VIRTUALIZED_DEVICE_NOT_SUPPORTED = 33;
constexpr CUptiResult CUPTI_ERROR_INSUFFICIENT_PRIVILEGES = 35;
constexpr CUptiResult CUPTI_ERROR_MULTIPLE_SUBSCRIBERS_NOT_SUPPORTED = 39;
constexpr CUptiResult CUPTI_ERROR_VIRTUALIZED_DEVICE_INSUFFICIENT_PRIVILEGES = 40;
constexpr CUptiResult CUPTI_ERROR_UNKNOWN = 999;

constexpr CUpti_ActivityKind CUPTI_ACTIVITY_KIND_MEMCPY = 1;
constexpr CUpti_ActivityKind CUPTI_ACTIVITY_KIND_MEMSET = 2;
constexpr CUpti_ActivityKind CUPTI_ACTIVITY_KIND_KERNEL = 3;
constexpr CUpti_ActivityKind CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL = 10;
constexpr CUpti_ActivityKind CUPTI_ACTIVITY_KIND_MEMCPY2 = 22;

constexpr std::uint32_t CUPTI_ACTIVITY_FLAG_FLUSH_FORCED = 1;

constexpr CUpti_CallbackDomain CUPTI_CB_DOMAIN_DRIVER_API = 1;
constexpr CUpti_ApiCallbackSite CUPTI_API_ENTER = 0;

// abi-prefix: CUpti_Activity
struct CUpti_Activity {
  CUpti_ActivityKind kind;
};

// abi-prefix: CUpti_ActivityKernel*
struct ActivityKernelPrefix {
  CUpti_ActivityKind kind;
  std::uint32_t unread_a[3];
  std::uint64_t start;
  std::uint64_t end;
  std::uint64_t completed;
  std::uint32_t deviceId;
  std::uint32_t contextId;
  std::uint32_t streamId;
  std::uint32_t unread_b[10];
  std::uint32_t correlationId;
  std::int64_t gridId;
  const char* name;
};

// abi-prefix: CUpti_ActivityMemcpy*
struct ActivityMemcpyPrefix {
  CUpti_ActivityKind kind;
  std::uint8_t copyKind;
  std::uint8_t unread_a[3];
  std::uint64_t bytes;
  std::uint64_t start;
  std::uint64_t end;
  std::uint32_t deviceId;
  std::uint32_t contextId;
  std::uint32_t streamId;
  std::uint32_t correlationId;
};

// abi-prefix: CUpti_ActivityMemcpyPtoP*
struct ActivityPeerCopyPrefix {
  CUpti_ActivityKind kind;
  std::uint8_t copyKind;
  std::uint8_t unread_a[3];
  std::uint64_t bytes;
  std::uint64_t start;
  std::uint64_t end;
  std::uint32_t deviceId;
  std::uint32_t contextId;
  std::uint32_t streamId;
};

// abi-prefix: CUpti_ActivityMemset*
struct ActivityMemsetPrefix {
  CUpti_ActivityKind kind;
  std::uint32_t value;
  std::uint64_t bytes;
  std::uint64_t start;
  std::uint64_t end;
  std::uint32_t deviceId;
  std::uint32_t contextId;
  std::uint32_t streamId;
  std::uint32_t correlationId;
};

// The call that a callback belongs to.
// abi-prefix: CUpti_CallbackData
struct CallbackDataPrefix {
  CUpti_ApiCallbackSite callbackSite;
  const char* functionName;
  const void* functionParams;
  void* functionReturnValue;
  const char* symbolName;
  CUcontext context;
};

// The arguments of the driver's launches, as they lie in a callback's data. Those of a cooperative launch
// begin alike.
// abi-prefix: cuLaunchKernel_params
struct LaunchKernelPrefix {
  CUfunction f;
  unsigned int gridDimX;
  unsigned int gridDimY;
  unsigned int gridDimZ;
  unsigned int blockDimX;
  unsigned int blockDimY;
  unsigned int blockDimZ;
  unsigned int sharedMemBytes;
  CUstream hStream;
};

// abi-prefix: cuLaunchKernelEx_params
struct LaunchKernelExPrefix {
  const void* config;
};

// abi-prefix: CUlaunchConfig
struct LaunchConfigPrefix {
  unsigned int gridDimX;
  unsigned int gridDimY;
  unsigned int gridDimZ;
  unsigned int blockDimX;
  unsigned int blockDimY;
  unsigned int blockDimZ;
  unsigned int sharedMemBytes;
  CUstream hStream;
};

// abi-prefix: cuGraphLaunch_params
struct GraphLaunchPrefix {
  CUgraphExec hGraph;
  CUstream hStream;
};

using CUpti_CallbackFunc = void (*)(void*, int, std::uint32_t, const void*);
using CUpti_BuffersCallbackRequestFunc = void (*)(std::uint8_t**, std::size_t*, std::size_t*);
using CUpti_BuffersCallbackCompleteFunc = void (*)(CUcontext, std::uint32_t, std::uint8_t*, std::size_t,
                                                   std::size_t);
using CUpti_TimestampCallbackFunc = std::uint64_t (*)();

using PFN_cuptiGetVersion = CUptiResult (*)(std::uint32_t*);
using PFN_cuptiGetResultString = CUptiResult (*)(CUptiResult, const char**);
using PFN_cuptiGetTimestamp = CUptiResult (*)(std::uint64_t*);
using PFN_cuptiGetContextId = CUptiResult (*)(CUcontext, std::uint32_t*);
using PFN_cuptiGetStreamIdEx = CUptiResult (*)(CUcontext, CUstream, std::uint8_t, std::uint32_t*);
using PFN_cuptiSubscribe = CUptiResult (*)(CUpti_SubscriberHandle*, CUpti_CallbackFunc, void*);
using PFN_cuptiEnableDomain = CUptiResult (*)(std::uint32_t, CUpti_SubscriberHandle, CUpti_CallbackDomain);
using PFN_cuptiUnsubscribe = CUptiResult (*)(CUpti_SubscriberHandle);
using PFN_cuptiActivityRegisterCallbacks = CUptiResult (*)(CUpti_BuffersCallbackRequestFunc,
                                                           CUpti_BuffersCallbackCompleteFunc);
using PFN_cuptiActivityRegisterTimestampCallback = CUptiResult (*)(CUpti_TimestampCallbackFunc);
using PFN_cuptiActivityEnable = CUptiResult (*)(CUpti_ActivityKind);
using PFN_cuptiActivityDisable = CUptiResult (*)(CUpti_ActivityKind);
using PFN_cuptiActivityFlushAll = CUptiResult (*)(std::uint32_t);
using PFN_cuptiActivityGetNextRecord = CUptiResult (*)(std::uint8_t*, std::size_t, CUpti_Activity**);
using PFN_cuptiActivityGetNumDroppedRecords = CUptiResult (*)(CUcontext, std::uint32_t, std::size_t*);

}  // namespace fairlap::cuda
