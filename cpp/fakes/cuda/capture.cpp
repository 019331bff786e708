#include "fakes/cuda/capture.hpp"

#include <algorithm>

#include "fakes/cuda/lookup.hpp"

namespace fairlap::fakes {
namespace {

constexpr int kModeGlobal = 0;
constexpr int kModeThreadLocal = 1;

// How far a thread's calls respect the captures of others.
thread_local CUstreamCaptureMode mode_of_thread = kModeGlobal;

CUresult spoil(Capture& capture, CUresult error) {
  capture.invalidated = true;
  return error;
}

std::set<std::size_t> ancestors(const Graph& graph, const std::vector<std::size_t>& from) {
  std::set<std::size_t> seen;
  std::vector<std::size_t> open = from;
  while (!open.empty()) {
    const std::size_t node = open.back();
    open.pop_back();
    if (!seen.insert(node).second) continue;
    open.insert(open.end(), graph.nodes[node].after.begin(), graph.nodes[node].after.end());
  }
  return seen;
}

}  // namespace

CUresult capture_task(World& w, Stream& stream, Task task) {
  Capture& capture = *stream.capture;
  if (capture.invalidated) return CUDA_ERROR_STREAM_CAPTURE_INVALIDATED;
  capture.graph.nodes.push_back({std::move(task), stream.frontier, w.new_handle()});
  stream.frontier = {capture.graph.nodes.size() - 1};
  return CUDA_SUCCESS;
}

CUresult capture_event_record(Stream& stream, Event& event) {
  if (stream.capture->invalidated) return CUDA_ERROR_STREAM_CAPTURE_INVALIDATED;
  event.record = nullptr;
  event.capture = stream.capture;
  event.frontier = stream.frontier;
  return CUDA_SUCCESS;
}

CUresult capture_event_wait(World& w, Stream& stream, const Event& event) {
  if (stream.capture && stream.capture->invalidated) return CUDA_ERROR_STREAM_CAPTURE_INVALIDATED;
  if (!event.capture) return spoil(*stream.capture, CUDA_ERROR_STREAM_CAPTURE_ISOLATION);
  const bool ongoing = std::find(w.captures.begin(), w.captures.end(), event.capture) != w.captures.end();
  if (!ongoing) return CUDA_ERROR_CAPTURED_EVENT;
  if (stream.capture && stream.capture != event.capture) {
    spoil(*event.capture, 0);
    return spoil(*stream.capture, CUDA_ERROR_STREAM_CAPTURE_MERGE);
  }
  stream.capture = event.capture;
  for (const std::size_t node : event.frontier) {
    if (std::find(stream.frontier.begin(), stream.frontier.end(), node) == stream.frontier.end()) {
      stream.frontier.push_back(node);
    }
  }
  return CUDA_SUCCESS;
}

CapturePtr implicit_dependency(World& w, const Stream& stream) {
  if (!stream.legacy) return nullptr;
  const ContextPtr context = find_context(w, stream.context);
  for (const StreamPtr& other : streams_of(*context)) {
    if (other->capture && !other->non_blocking) return other->capture;
  }
  return nullptr;
}

CUresult check_implicit_dependency(World& w, const Stream& stream) {
  const CapturePtr disturbed = implicit_dependency(w, stream);
  return disturbed ? spoil(*disturbed, CUDA_ERROR_STREAM_CAPTURE_IMPLICIT) : CUDA_SUCCESS;
}

CUresult check_unsafe_call(World& w) {
  CUresult result = CUDA_SUCCESS;
  if (mode_of_thread == CU_STREAM_CAPTURE_MODE_RELAXED) return result;
  for (const CapturePtr& capture : w.captures) {
    const bool own = capture->thread == std::this_thread::get_id();
    const bool forbids = (own && capture->mode != CU_STREAM_CAPTURE_MODE_RELAXED) ||
                         (capture->mode == kModeGlobal && mode_of_thread == kModeGlobal);
    if (forbids) result = spoil(*capture, CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED);
  }
  return result;
}

CUresult check_context_call(World& w, Handle context) {
  CUresult result = CUDA_SUCCESS;
  for (const CapturePtr& capture : w.captures) {
    if (capture->context == context) result = spoil(*capture, CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED);
  }
  return result;
}

CUresult check_stream_call(Stream& stream) {
  return stream.capture ? spoil(*stream.capture, CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED) : CUDA_SUCCESS;
}

FAKE_EXPORT CUresult cuStreamBeginCapture_v2(CUstream hStream, CUstreamCaptureMode mode) {
  return entry("cuStreamBeginCapture_v2", [&](World& w, Lock&) -> CUresult {
    StreamPtr stream;
    if (const CUresult error = find_stream(w, hStream, stream); error != CUDA_SUCCESS) return error;
    if (mode < kModeGlobal || mode > CU_STREAM_CAPTURE_MODE_RELAXED) return CUDA_ERROR_INVALID_VALUE;
    if (stream->legacy) return CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED;
    if (stream->capture) return CUDA_ERROR_ILLEGAL_STATE;
    auto capture = std::make_shared<Capture>();
    capture->mode = mode;
    capture->thread = std::this_thread::get_id();
    capture->context = stream->context;
    capture->origin = stream->handle;
    stream->capture = capture;
    stream->frontier.clear();
    w.captures.push_back(capture);
    return CUDA_SUCCESS;
  });
}

FAKE_EXPORT CUresult cuStreamEndCapture(CUstream hStream, CUgraph* phGraph) {
  return entry("cuStreamEndCapture", [&](World& w, Lock&) -> CUresult {
    StreamPtr stream;
    if (const CUresult error = find_stream(w, hStream, stream); error != CUDA_SUCCESS) return error;
    if (phGraph == nullptr) return CUDA_ERROR_INVALID_VALUE;
    *phGraph = nullptr;
    const CapturePtr capture = stream->capture;
    if (!capture) return CUDA_ERROR_ILLEGAL_STATE;
    if (capture->origin != stream->handle) return spoil(*capture, CUDA_ERROR_STREAM_CAPTURE_UNMATCHED);
    if (capture->mode != CU_STREAM_CAPTURE_MODE_RELAXED && capture->thread != std::this_thread::get_id()) {
      return CUDA_ERROR_STREAM_CAPTURE_WRONG_THREAD;
    }
    const std::set<std::size_t> joined = ancestors(capture->graph, stream->frontier);
    CUresult result = capture->invalidated ? CUDA_ERROR_STREAM_CAPTURE_INVALIDATED : CUDA_SUCCESS;
    const ContextPtr context = find_context(w, stream->context);
    for (const StreamPtr& other : streams_of(*context)) {
      if (other->capture != capture) continue;
      for (const std::size_t node : other->frontier) {
        if (result == CUDA_SUCCESS && !joined.contains(node)) result = CUDA_ERROR_STREAM_CAPTURE_UNJOINED;
      }
      other->capture = nullptr;
      other->frontier.clear();
    }
    std::erase(w.captures, capture);
    if (result != CUDA_SUCCESS) return result;
    const Handle handle = w.new_handle();
    capture->graph.id = ++w.last_graph_id;
    w.graphs[handle] = capture->graph;
    *phGraph = pointer<CUgraph>(handle);
    return CUDA_SUCCESS;
  });
}

FAKE_EXPORT CUresult cuThreadExchangeStreamCaptureMode(CUstreamCaptureMode* mode) {
  return entry("cuThreadExchangeStreamCaptureMode", [&](World&, Lock&) -> CUresult {
    if (mode == nullptr || *mode < kModeGlobal || *mode > CU_STREAM_CAPTURE_MODE_RELAXED) {
      return CUDA_ERROR_INVALID_VALUE;
    }
    std::swap(*mode, mode_of_thread);
    return CUDA_SUCCESS;
  });
}

FAKE_EXPORT CUresult cuStreamIsCapturing(CUstream hStream, CUstreamCaptureStatus* status) {
  return entry("cuStreamIsCapturing", [&](World& w, Lock&) -> CUresult {
    StreamPtr stream;
    if (const CUresult error = find_stream(w, hStream, stream); error != CUDA_SUCCESS) return error;
    if (status == nullptr) return CUDA_ERROR_INVALID_VALUE;
    // Asking is refused on the default stream, but does not spoil the capture that it would disturb.
    if (implicit_dependency(w, *stream)) return CUDA_ERROR_STREAM_CAPTURE_IMPLICIT;
    *status = !stream->capture               ? CU_STREAM_CAPTURE_STATUS_NONE
              : stream->capture->invalidated ? CU_STREAM_CAPTURE_STATUS_INVALIDATED
                                             : CU_STREAM_CAPTURE_STATUS_ACTIVE;
    return CUDA_SUCCESS;
  });
}

}  // namespace fairlap::fakes
