#include <type_traits>

#include "fakes/cupti/exports.hpp"
#include "fakes/cupti/profiler.hpp"

// CUPTI's functions as the fake has them.
namespace fairlap::fakes {

using namespace fairlap::cuda;  // the fake is written in the library's own types

namespace {

// Compiles only when each function has the very type that the engine calls it by.
#define FAKE_SAME_TYPE(function) \
  static_assert(std::is_same_v<decltype(&fairlap::cuda::function), PFN_##function>)
FAKE_SAME_TYPE(cuptiGetVersion);
FAKE_SAME_TYPE(cuptiGetResultString);
FAKE_SAME_TYPE(cuptiGetTimestamp);
FAKE_SAME_TYPE(cuptiGetContextId);
FAKE_SAME_TYPE(cuptiGetStreamIdEx);
FAKE_SAME_TYPE(cuptiSubscribe);
FAKE_SAME_TYPE(cuptiEnableDomain);
FAKE_SAME_TYPE(cuptiUnsubscribe);
FAKE_SAME_TYPE(cuptiActivityRegisterCallbacks);
FAKE_SAME_TYPE(cuptiActivityRegisterTimestampCallback);
FAKE_SAME_TYPE(cuptiActivityEnable);
FAKE_SAME_TYPE(cuptiActivityDisable);
FAKE_SAME_TYPE(cuptiActivityFlushAll);
FAKE_SAME_TYPE(cuptiActivityGetNextRecord);
FAKE_SAME_TYPE(cuptiActivityGetNumDroppedRecords);
#undef FAKE_SAME_TYPE

template <class Body>
CUptiResult entry(const char* function, Body body) {
  Profiler& p = profiler();
  const std::lock_guard lock(p.mutex);
  if (const auto error = p.faults.enter(function)) return *error;
  return body(p);
}

CUpti_SubscriberHandle the_subscriber() { return reinterpret_cast<CUpti_SubscriberHandle>(&profiler()); }

constexpr int kLastKind = 52;  // Kinds without records here are accepted too, and yield nothing.

struct Named {
  CUptiResult code;
  const char* name;
};
#define FAKE_NAMED(code) {code, #code}
constexpr Named kNames[] = {
    FAKE_NAMED(CUPTI_SUCCESS),
    FAKE_NAMED(CUPTI_ERROR_INVALID_PARAMETER),
    FAKE_NAMED(CUPTI_ERROR_MAX_LIMIT_REACHED),
    FAKE_NAMED(CUPTI_ERROR_NOT_COMPATIBLE),
    FAKE_NAMED(CUPTI_ERROR_NOT_INITIALIZED),
    FAKE_NAMED(CUPTI_ERROR_INVALID_KIND),
    FAKE_NAMED(CUPTI_ERROR_NOT_SUPPORTED),
    FAKE_NAMED(CUPTI_ERROR_VIRTUALIZED_DEVICE_NOT_SUPPORTED),
    FAKE_NAMED(CUPTI_ERROR_INSUFFICIENT_PRIVILEGES),
    FAKE_NAMED(CUPTI_ERROR_MULTIPLE_SUBSCRIBERS_NOT_SUPPORTED),
    FAKE_NAMED(CUPTI_ERROR_VIRTUALIZED_DEVICE_INSUFFICIENT_PRIVILEGES),
    FAKE_NAMED(CUPTI_ERROR_UNKNOWN),
};
#undef FAKE_NAMED

}  // namespace

#pragma GCC visibility push(default)
extern "C" {

CUptiResult cuptiGetVersion(std::uint32_t* version) {
  return entry("cuptiGetVersion", [&](Profiler& p) -> CUptiResult {
    if (version == nullptr) return CUPTI_ERROR_INVALID_PARAMETER;
    *version = p.version;
    return CUPTI_SUCCESS;
  });
}

CUptiResult cuptiGetResultString(CUptiResult code, const char** text) {
  return entry("cuptiGetResultString", [&](Profiler&) -> CUptiResult {
    if (text == nullptr) return CUPTI_ERROR_INVALID_PARAMETER;
    for (const Named& each : kNames) {
      if (each.code != code) continue;
      *text = each.name;
      return CUPTI_SUCCESS;
    }
    return CUPTI_ERROR_INVALID_PARAMETER;
  });
}

CUptiResult cuptiGetTimestamp(std::uint64_t* timestamp) {
  const std::int64_t now_ns = fake_cuda_now_ns();
  return entry("cuptiGetTimestamp", [&](Profiler& p) -> CUptiResult {
    if (timestamp == nullptr) return CUPTI_ERROR_INVALID_PARAMETER;
    *timestamp = stamp(p, now_ns);
    return CUPTI_SUCCESS;
  });
}

CUptiResult cuptiGetContextId(CUcontext context, std::uint32_t* id) {
  const std::uint32_t found = fake_cuda_context_id(reinterpret_cast<std::uint64_t>(context));
  return entry("cuptiGetContextId", [&](Profiler&) -> CUptiResult {
    constexpr CUptiResult kInvalidContext = 3;
    if (id == nullptr) return CUPTI_ERROR_INVALID_PARAMETER;
    *id = found;
    return found == 0 ? kInvalidContext : CUPTI_SUCCESS;
  });
}

CUptiResult cuptiGetStreamIdEx(CUcontext context, CUstream stream, std::uint8_t per_thread,
                               std::uint32_t* id) {
  const std::uint32_t found = fake_cuda_stream_id(reinterpret_cast<std::uint64_t>(context),
                                                  reinterpret_cast<std::uint64_t>(stream), per_thread);
  return entry("cuptiGetStreamIdEx", [&](Profiler&) -> CUptiResult {
    constexpr CUptiResult kInvalidStream = 20;
    if (id == nullptr) return CUPTI_ERROR_INVALID_PARAMETER;
    *id = found;
    return found == 0 ? kInvalidStream : CUPTI_SUCCESS;
  });
}

CUptiResult cuptiSubscribe(CUpti_SubscriberHandle* subscriber, CUpti_CallbackFunc on_call, void* user) {
  return entry("cuptiSubscribe", [&](Profiler& p) -> CUptiResult {
    if (subscriber == nullptr) return CUPTI_ERROR_INVALID_PARAMETER;
    if (p.held_by_another || p.subscribed) return CUPTI_ERROR_MULTIPLE_SUBSCRIBERS_NOT_SUPPORTED;
    p.subscribed = true;
    p.on_call = on_call;
    p.on_call_user = user;
    *subscriber = the_subscriber();
    return CUPTI_SUCCESS;
  });
}

CUptiResult cuptiEnableDomain(std::uint32_t enable, CUpti_SubscriberHandle subscriber,
                              CUpti_CallbackDomain domain) {
  const CUptiResult result = entry("cuptiEnableDomain", [&](Profiler& p) -> CUptiResult {
    constexpr CUpti_CallbackDomain kLastDomain = 6;
    if (!p.subscribed || subscriber != the_subscriber()) return CUPTI_ERROR_INVALID_PARAMETER;
    if (domain < CUPTI_CB_DOMAIN_DRIVER_API || domain > kLastDomain) return CUPTI_ERROR_INVALID_PARAMETER;
    if (domain == CUPTI_CB_DOMAIN_DRIVER_API) p.driver_calls = enable != 0 && p.on_call != nullptr;
    return CUPTI_SUCCESS;
  });
  if (result == CUPTI_SUCCESS) fake_cuda_listen_to_launches(&announce, &profiler());
  return result;
}

CUptiResult cuptiUnsubscribe(CUpti_SubscriberHandle subscriber) {
  return entry("cuptiUnsubscribe", [&](Profiler& p) -> CUptiResult {
    if (subscriber != the_subscriber()) return CUPTI_ERROR_INVALID_PARAMETER;
    p.subscribed = false;  // A second time is no error.
    p.driver_calls = false;
    return CUPTI_SUCCESS;
  });
}

CUptiResult cuptiActivityRegisterCallbacks(CUpti_BuffersCallbackRequestFunc request,
                                           CUpti_BuffersCallbackCompleteFunc complete) {
  return entry("cuptiActivityRegisterCallbacks", [&](Profiler& p) -> CUptiResult {
    if (request == nullptr || complete == nullptr) return CUPTI_ERROR_INVALID_PARAMETER;
    p.request = request;
    p.complete = complete;
    return CUPTI_SUCCESS;
  });
}

CUptiResult cuptiActivityRegisterTimestampCallback(CUpti_TimestampCallbackFunc callback) {
  return entry("cuptiActivityRegisterTimestampCallback", [&](Profiler& p) -> CUptiResult {
    if (callback == nullptr) return CUPTI_ERROR_INVALID_PARAMETER;
    const auto apart_ns = static_cast<std::int64_t>(callback()) - wall_clock_ns();
    p.counts_cycles = apart_ns < -1'000'000'000 || apart_ns > 1'000'000'000;
    return CUPTI_SUCCESS;
  });
}

CUptiResult cuptiActivityEnable(CUpti_ActivityKind kind) {
  const CUptiResult result = entry("cuptiActivityEnable", [&](Profiler& p) -> CUptiResult {
    if (kind < 1 || kind > kLastKind) return CUPTI_ERROR_INVALID_KIND;
    // One of the two, never both.
    const int other = kind == CUPTI_ACTIVITY_KIND_KERNEL              ? CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL
                      : kind == CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL ? CUPTI_ACTIVITY_KIND_KERNEL
                                                                      : 0;
    if (p.enabled.contains(other)) return CUPTI_ERROR_NOT_COMPATIBLE;
    p.enabled.insert(kind);
    return CUPTI_SUCCESS;
  });
  if (result == CUPTI_SUCCESS) fake_cuda_listen(&collect, &profiler());
  return result;
}

CUptiResult cuptiActivityDisable(CUpti_ActivityKind kind) {
  return entry("cuptiActivityDisable", [&](Profiler& p) -> CUptiResult {
    if (kind < 1 || kind > kLastKind) return CUPTI_ERROR_INVALID_KIND;
    p.enabled.erase(kind);
    return CUPTI_SUCCESS;
  });
}

CUptiResult cuptiActivityFlushAll(std::uint32_t flags) {
  const CUptiResult result = entry("cuptiActivityFlushAll", [&](Profiler&) -> CUptiResult {
    return flags <= CUPTI_ACTIVITY_FLAG_FLUSH_FORCED ? CUPTI_SUCCESS : CUPTI_ERROR_INVALID_PARAMETER;
  });
  if (result == CUPTI_SUCCESS) deliver(profiler());
  return result;
}

CUptiResult cuptiActivityGetNextRecord(std::uint8_t* buffer, std::size_t bytes, CUpti_Activity** record) {
  return entry("cuptiActivityGetNextRecord", [&](Profiler& p) -> CUptiResult {
    if (buffer == nullptr || record == nullptr) return CUPTI_ERROR_INVALID_PARAMETER;
    std::size_t offset = 0;
    if (*record != nullptr) {
      const std::size_t own = record_bytes(p.version, (*record)->kind);
      if (own == 0) return CUPTI_ERROR_INVALID_KIND;
      offset = static_cast<std::size_t>(reinterpret_cast<std::uint8_t*>(*record) - buffer) + own;
    }
    if (offset >= bytes) return CUPTI_ERROR_MAX_LIMIT_REACHED;
    auto* const next = reinterpret_cast<CUpti_Activity*>(buffer + offset);
    if (next->kind == 0) return CUPTI_ERROR_INVALID_KIND;  // room that was taken and never written to
    *record = next;
    return CUPTI_SUCCESS;
  });
}

CUptiResult cuptiActivityGetNumDroppedRecords(CUcontext, std::uint32_t, std::size_t* dropped) {
  return entry("cuptiActivityGetNumDroppedRecords", [&](Profiler& p) -> CUptiResult {
    if (dropped == nullptr) return CUPTI_ERROR_INVALID_PARAMETER;
    *dropped = p.dropped;  // since the last time it was asked
    p.dropped = 0;
    return CUPTI_SUCCESS;
  });
}

}  // extern "C"
#pragma GCC visibility pop
}  // namespace fairlap::fakes
