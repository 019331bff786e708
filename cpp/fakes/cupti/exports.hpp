#pragma once

#include "cuda/activity/cupti_abi.hpp"

namespace fairlap::cuda {

#pragma GCC visibility push(default)  // functions of another library
extern "C" {
CUptiResult cuptiGetVersion(std::uint32_t*);
CUptiResult cuptiGetResultString(CUptiResult, const char**);
CUptiResult cuptiGetTimestamp(std::uint64_t*);
CUptiResult cuptiGetContextId(CUcontext, std::uint32_t*);
CUptiResult cuptiGetStreamIdEx(CUcontext, CUstream, std::uint8_t, std::uint32_t*);
CUptiResult cuptiSubscribe(CUpti_SubscriberHandle*, CUpti_CallbackFunc, void*);
CUptiResult cuptiEnableDomain(std::uint32_t, CUpti_SubscriberHandle, CUpti_CallbackDomain);
CUptiResult cuptiUnsubscribe(CUpti_SubscriberHandle);
CUptiResult cuptiActivityRegisterCallbacks(CUpti_BuffersCallbackRequestFunc,
                                           CUpti_BuffersCallbackCompleteFunc);
CUptiResult cuptiActivityRegisterTimestampCallback(CUpti_TimestampCallbackFunc);
CUptiResult cuptiActivityEnable(CUpti_ActivityKind);
CUptiResult cuptiActivityDisable(CUpti_ActivityKind);
CUptiResult cuptiActivityFlushAll(std::uint32_t);
CUptiResult cuptiActivityGetNextRecord(std::uint8_t*, std::size_t, CUpti_Activity**);
CUptiResult cuptiActivityGetNumDroppedRecords(CUcontext, std::uint32_t, std::size_t*);
}
#pragma GCC visibility pop

}  // namespace fairlap::cuda
