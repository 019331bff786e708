#pragma once

#include "cuda/driver/driver_abi.hpp"

// The driver's interface as the fake exports it, in the engine's types. Functions that the engine declares
// too are checked against its pointer types in symbols.cpp, all of them against NVIDIA's by tests/abi.
namespace fairlap::cuda {

#pragma GCC visibility push(default)  // functions of another library
extern "C" {
CUresult cuGetProcAddress(const char*, void**, int, std::uint64_t);
CUresult cuGetProcAddress_v2(const char*, void**, int, std::uint64_t, CUdriverProcAddressQueryResult*);

CUresult cuInit(unsigned int);
CUresult cuDriverGetVersion(int*);
CUresult cuGetErrorName(CUresult, const char**);
CUresult cuGetErrorString(CUresult, const char**);
CUresult cuDeviceGet(CUdevice*, int);
CUresult cuDeviceGetCount(int*);
CUresult cuDeviceGetName(char*, int, CUdevice);
CUresult cuDeviceGetPCIBusId(char*, int, CUdevice);
CUresult cuDeviceGetUuid_v2(CUuuid*, CUdevice);
CUresult cuDeviceGetAttribute(int*, CUdevice_attribute, CUdevice);
CUresult cuDeviceCanAccessPeer(int*, CUdevice, CUdevice);

CUresult cuDevicePrimaryCtxGetState(CUdevice, unsigned int*, int*);
CUresult cuDevicePrimaryCtxRetain(CUcontext*, CUdevice);
CUresult cuDevicePrimaryCtxRelease_v2(CUdevice);
CUresult cuCtxGetCurrent(CUcontext*);
CUresult cuCtxPushCurrent_v2(CUcontext);
CUresult cuCtxPopCurrent_v2(CUcontext*);
CUresult cuCtxGetDevice(CUdevice*);
CUresult cuCtxGetId(CUcontext, unsigned long long*);
CUresult cuCtxGetLimit(std::size_t*, CUlimit);
CUresult cuCtxResetPersistingL2Cache();
CUresult cuCtxSynchronize();
CUresult cuCtxRecordEvent(CUcontext, CUevent);
CUresult cuCtxWaitEvent(CUcontext, CUevent);
CUresult cuCtxEnablePeerAccess(CUcontext, unsigned int);
CUresult cuCtxDisablePeerAccess(CUcontext);

CUresult cuStreamCreate(CUstream*, unsigned int);
CUresult cuStreamDestroy_v2(CUstream);
CUresult cuStreamGetCtx(CUstream, CUcontext*);
CUresult cuStreamQuery(CUstream);
CUresult cuStreamSynchronize(CUstream);
CUresult cuStreamWaitEvent(CUstream, CUevent, unsigned int);
CUresult cuStreamWaitValue32_v2(CUstream, CUdeviceptr, std::uint32_t, unsigned int);
CUresult cuStreamWriteValue32_v2(CUstream, CUdeviceptr, std::uint32_t, unsigned int);
CUresult cuStreamBeginCapture_v2(CUstream, CUstreamCaptureMode);
CUresult cuStreamEndCapture(CUstream, CUgraph*);
CUresult cuThreadExchangeStreamCaptureMode(CUstreamCaptureMode*);
CUresult cuStreamIsCapturing(CUstream, CUstreamCaptureStatus*);

CUresult cuEventCreate(CUevent*, unsigned int);
CUresult cuEventDestroy_v2(CUevent);
CUresult cuEventRecord(CUevent, CUstream);
CUresult cuEventQuery(CUevent);
CUresult cuEventSynchronize(CUevent);
CUresult cuEventElapsedTime(float*, CUevent, CUevent);
CUresult cuEventElapsedTime_v2(float*, CUevent, CUevent);

CUresult cuMemAlloc_v2(CUdeviceptr*, std::size_t);
CUresult cuMemFree_v2(CUdeviceptr);
CUresult cuMemGetInfo_v2(std::size_t*, std::size_t*);
CUresult cuMemHostAlloc(void**, std::size_t, unsigned int);
CUresult cuMemFreeHost(void*);
CUresult cuMemHostRegister_v2(void*, std::size_t, unsigned int);
CUresult cuMemHostUnregister(void*);
CUresult cuMemHostGetDevicePointer_v2(CUdeviceptr*, void*, unsigned int);
CUresult cuMemsetD32Async(CUdeviceptr, unsigned int, std::size_t, CUstream);
CUresult cuMemcpyHtoDAsync_v2(CUdeviceptr, const void*, std::size_t, CUstream);
CUresult cuMemcpyDtoHAsync_v2(void*, CUdeviceptr, std::size_t, CUstream);
CUresult cuMemcpyDtoDAsync_v2(CUdeviceptr, CUdeviceptr, std::size_t, CUstream);
CUresult cuMemcpyPeerAsync(CUdeviceptr, CUcontext, CUdeviceptr, CUcontext, std::size_t, CUstream);
CUresult cuMemcpyDtoH_v2(void*, CUdeviceptr, std::size_t);

CUresult cuIpcGetMemHandle(CUipcMemHandle*, CUdeviceptr);
CUresult cuIpcOpenMemHandle_v2(CUdeviceptr*, CUipcMemHandle, unsigned int);
CUresult cuIpcCloseMemHandle(CUdeviceptr);

CUresult cuModuleLoadData(CUmodule*, const void*);
CUresult cuModuleUnload(CUmodule);
CUresult cuModuleGetFunction(CUfunction*, CUmodule, const char*);
CUresult cuFuncSetAttribute(CUfunction, CUfunction_attribute, int);
CUresult cuLaunchKernel(CUfunction, unsigned int, unsigned int, unsigned int, unsigned int, unsigned int,
                        unsigned int, unsigned int, CUstream, void**, void**);

CUresult cuGraphInstantiateWithFlags(CUgraphExec*, CUgraph, unsigned long long);
CUresult cuGraphUpload(CUgraphExec, CUstream);
CUresult cuGraphLaunch(CUgraphExec, CUstream);
CUresult cuGraphGetNodes(CUgraph, CUgraphNode*, std::size_t*);
CUresult cuGraphExecDestroy(CUgraphExec);
CUresult cuGraphDestroy(CUgraph);
}
#pragma GCC visibility pop

}  // namespace fairlap::cuda
