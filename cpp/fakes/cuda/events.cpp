#include "fakes/cuda/blocking.hpp"
#include "fakes/cuda/capture.hpp"
#include "fakes/cuda/enqueue.hpp"
#include "fakes/cuda/lookup.hpp"

namespace fairlap::fakes {
namespace {

constexpr unsigned int kBlockingSync = 1;
constexpr unsigned int kDisableTiming = 2;

std::int64_t stamp_ns(const World& w, const Event& event) {
  return event.record->end_ns / w.event_tick_ns * w.event_tick_ns;
}

CUresult elapsed(World& w, float* milliseconds, CUevent hStart, CUevent hEnd) {
  if (!current_context(w)) return CUDA_ERROR_INVALID_CONTEXT;
  if (milliseconds == nullptr) return CUDA_ERROR_INVALID_VALUE;
  Event* start = nullptr;
  Event* end = nullptr;
  if (const CUresult error = find_event(w, hStart, start); error != CUDA_SUCCESS) return error;
  if (const CUresult error = find_event(w, hEnd, end); error != CUDA_SUCCESS) return error;
  if (start->capture || end->capture) return CUDA_ERROR_CAPTURED_EVENT;
  if (!start->timing || !end->timing || start->context != end->context) return CUDA_ERROR_INVALID_HANDLE;
  if (!start->record || !end->record) return CUDA_ERROR_INVALID_HANDLE;
  if (!w.timeline.done(start->record) || !w.timeline.done(end->record)) return CUDA_ERROR_NOT_READY;
  // The driver computes in its own unit and gives single-precision milliseconds.
  *milliseconds = static_cast<float>(static_cast<double>(stamp_ns(w, *end) - stamp_ns(w, *start)) / 1e6);
  return CUDA_SUCCESS;
}

CUresult record(World& w, CUevent hEvent, CUstream hStream) {
  if (!current_context(w)) return CUDA_ERROR_INVALID_CONTEXT;
  Event* event = nullptr;
  if (const CUresult error = find_event(w, hEvent, event); error != CUDA_SUCCESS) return error;
  StreamPtr stream;
  if (const CUresult error = find_stream(w, hStream, stream); error != CUDA_SUCCESS) return error;
  if (event->context != stream->context) return CUDA_ERROR_INVALID_HANDLE;
  if (stream->capture) return capture_event_record(*stream, *event);
  Task task;
  task.duration_ns = w.event_record_ns;
  OpPtr made;
  if (const CUresult error = enqueue(w, *stream, task, {}, &made); error != CUDA_SUCCESS) return error;
  event->record = made;
  event->capture = nullptr;
  return CUDA_SUCCESS;
}

}  // namespace

FAKE_EXPORT CUresult cuEventCreate(CUevent* out, unsigned int flags) {
  return entry("cuEventCreate", [&](World& w, Lock&) -> CUresult {
    const ContextPtr context = current_context(w);
    if (!context) return CUDA_ERROR_INVALID_CONTEXT;
    if (out == nullptr || (flags & ~(kBlockingSync | kDisableTiming)) != 0) return CUDA_ERROR_INVALID_VALUE;
    const Handle handle = w.new_handle();
    w.events[handle] = Event{context->handle, (flags & kDisableTiming) == 0, nullptr, nullptr, {}};
    *out = pointer<CUevent>(handle);
    return CUDA_SUCCESS;
  });
}

FAKE_EXPORT CUresult cuEventDestroy_v2(CUevent event) {
  return entry("cuEventDestroy_v2", [&](World& w, Lock&) -> CUresult {
    Event* found = nullptr;
    if (const CUresult error = find_event(w, event, found); error != CUDA_SUCCESS) return error;
    w.events.erase(number(event));
    gave_back(w, "event", number(event));
    return CUDA_SUCCESS;
  });
}

FAKE_EXPORT CUresult cuEventRecord(CUevent event, CUstream stream) {
  return entry("cuEventRecord", [&](World& w, Lock&) -> CUresult { return record(w, event, stream); });
}

FAKE_EXPORT CUresult cuEventQuery(CUevent hEvent) {
  return entry("cuEventQuery", [&](World& w, Lock&) -> CUresult {
    Event* event = nullptr;
    if (const CUresult error = find_event(w, hEvent, event); error != CUDA_SUCCESS) return error;
    if (event->capture) return CUDA_ERROR_CAPTURED_EVENT;
    if (const CUresult error = check_unsafe_call(w); error != CUDA_SUCCESS) return error;
    return query(w, {event->record});
  });
}

FAKE_EXPORT CUresult cuEventSynchronize(CUevent hEvent) {
  return entry("cuEventSynchronize", [&](World& w, Lock& lock) -> CUresult {
    if (!current_context(w)) return CUDA_ERROR_INVALID_CONTEXT;
    Event* event = nullptr;
    if (const CUresult error = find_event(w, hEvent, event); error != CUDA_SUCCESS) return error;
    if (event->capture) return CUDA_ERROR_CAPTURED_EVENT;
    if (const CUresult error = check_unsafe_call(w); error != CUDA_SUCCESS) return error;
    return wait_for(w, lock, {event->record});
  });
}

FAKE_EXPORT CUresult cuEventElapsedTime(float* milliseconds, CUevent start, CUevent end) {
  return entry("cuEventElapsedTime",
               [&](World& w, Lock&) -> CUresult { return elapsed(w, milliseconds, start, end); });
}

// The form of CUDA 12.8 and later; for the events modelled here it means the same.
FAKE_EXPORT CUresult cuEventElapsedTime_v2(float* milliseconds, CUevent start, CUevent end) {
  return entry("cuEventElapsedTime_v2",
               [&](World& w, Lock&) -> CUresult { return elapsed(w, milliseconds, start, end); });
}

}  // namespace fairlap::fakes
