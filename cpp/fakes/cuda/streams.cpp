#include "fakes/cuda/blocking.hpp"
#include "fakes/cuda/capture.hpp"
#include "fakes/cuda/enqueue.hpp"
#include "fakes/cuda/lookup.hpp"

namespace fairlap::fakes {

FAKE_EXPORT CUresult cuStreamCreate(CUstream* out, unsigned int flags) {
  return entry("cuStreamCreate", [&](World& w, Lock&) -> CUresult {
    const ContextPtr context = current_context(w);
    if (!context) return CUDA_ERROR_INVALID_CONTEXT;
    if (out == nullptr || (flags & ~CU_STREAM_NON_BLOCKING) != 0) return CUDA_ERROR_INVALID_VALUE;
    const StreamPtr stream = new_stream(w, *context, (flags & CU_STREAM_NON_BLOCKING) != 0, false);
    context->streams[stream->handle] = stream;
    *out = pointer<CUstream>(stream->handle);
    return CUDA_SUCCESS;
  });
}

FAKE_EXPORT CUresult cuStreamDestroy_v2(CUstream hStream) {
  return entry("cuStreamDestroy_v2", [&](World& w, Lock&) -> CUresult {
    StreamPtr stream;
    if (const CUresult error = find_stream(w, hStream, stream); error != CUDA_SUCCESS) return error;
    const ContextPtr context = find_context(w, stream->context);
    if (!context->streams.contains(stream->handle)) return CUDA_ERROR_INVALID_HANDLE;  // a default stream
    if (check_stream_call(*stream) != CUDA_SUCCESS) return CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED;
    // Its work still runs to the end.
    if (pending_count(w, *stream) > 0) context->orphans.push_back(stream->last());
    context->streams.erase(stream->handle);
    gave_back(w, "stream", stream->handle);
    return CUDA_SUCCESS;
  });
}

FAKE_EXPORT CUresult cuStreamGetCtx(CUstream hStream, CUcontext* context) {
  return entry("cuStreamGetCtx", [&](World& w, Lock&) -> CUresult {
    StreamPtr stream;
    if (const CUresult error = find_stream(w, hStream, stream); error != CUDA_SUCCESS) return error;
    if (context == nullptr) return CUDA_ERROR_INVALID_VALUE;
    *context = pointer<CUcontext>(stream->context);
    return CUDA_SUCCESS;
  });
}

FAKE_EXPORT CUresult cuStreamQuery(CUstream hStream) {
  return entry("cuStreamQuery", [&](World& w, Lock&) -> CUresult {
    if (!current_context(w)) return CUDA_ERROR_INVALID_CONTEXT;
    StreamPtr stream;
    if (const CUresult error = find_stream(w, hStream, stream); error != CUDA_SUCCESS) return error;
    if (const CUresult error = check_implicit_dependency(w, *stream); error != CUDA_SUCCESS) return error;
    if (const CUresult error = check_stream_call(*stream); error != CUDA_SUCCESS) return error;
    if (const CUresult error = check_unsafe_call(w); error != CUDA_SUCCESS) return error;
    return query(w, stream->legacy ? order_of(w, *stream) : std::vector<OpPtr>{stream->last()});
  });
}

FAKE_EXPORT CUresult cuStreamSynchronize(CUstream hStream) {
  return entry("cuStreamSynchronize", [&](World& w, Lock& lock) -> CUresult {
    if (!current_context(w)) return CUDA_ERROR_INVALID_CONTEXT;
    StreamPtr stream;
    if (const CUresult error = find_stream(w, hStream, stream); error != CUDA_SUCCESS) return error;
    if (const CUresult error = check_implicit_dependency(w, *stream); error != CUDA_SUCCESS) return error;
    if (const CUresult error = check_stream_call(*stream); error != CUDA_SUCCESS) return error;
    if (const CUresult error = check_unsafe_call(w); error != CUDA_SUCCESS) return error;
    if (stream->legacy) return wait_for(w, lock, order_of(w, *stream));
    return wait_for(w, lock, {stream->last()});
  });
}

FAKE_EXPORT CUresult cuStreamWaitEvent(CUstream hStream, CUevent hEvent, unsigned int flags) {
  return entry("cuStreamWaitEvent", [&](World& w, Lock&) -> CUresult {
    if (flags != 0) return CUDA_ERROR_INVALID_VALUE;
    StreamPtr stream;
    if (const CUresult error = find_stream(w, hStream, stream); error != CUDA_SUCCESS) return error;
    Event* event = nullptr;
    if (const CUresult error = find_event(w, hEvent, event); error != CUDA_SUCCESS) return error;
    if (stream->capture || event->capture) return capture_event_wait(w, *stream, *event);
    if (!event->record) return CUDA_SUCCESS;
    return enqueue(w, *stream, Task{}, {event->record});
  });
}

}  // namespace fairlap::fakes
