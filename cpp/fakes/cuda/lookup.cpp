#include "fakes/cuda/lookup.hpp"

namespace fairlap::fakes {

std::vector<Handle>& context_stack(const World& w) {
  struct Stack {
    std::uint64_t generation = 0;
    std::vector<Handle> contexts;
  };
  thread_local Stack stack;
  if (stack.generation != w.generation) stack = {w.generation, {}};
  return stack.contexts;
}

ContextPtr find_context(World& w, Handle context) {
  const auto found = w.contexts.find(context);
  return found == w.contexts.end() ? nullptr : found->second;
}

ContextPtr current_context(World& w) {
  const std::vector<Handle>& stack = context_stack(w);
  return stack.empty() ? nullptr : find_context(w, stack.back());
}

StreamPtr new_stream(World& w, Context& context, bool non_blocking, bool from_framework) {
  auto stream = std::make_shared<Stream>();
  stream->handle = w.new_handle();
  stream->context = context.handle;
  stream->id = ++w.last_stream_id;
  stream->non_blocking = non_blocking;
  stream->from_framework = from_framework;
  return stream;
}

StreamPtr per_thread_stream(World& w, Context& context) {
  StreamPtr& mine = context.per_thread[std::this_thread::get_id()];
  if (!mine) mine = new_stream(w, context, false, true);
  return mine;
}

CUresult find_stream(World& w, CUstream stream, StreamPtr& found) {
  const Handle handle = number(stream);
  if (handle == 0 || handle == STREAM_LEGACY || handle == STREAM_PER_THREAD) {
    const ContextPtr context = current_context(w);
    if (!context) return CUDA_ERROR_INVALID_CONTEXT;
    found = handle == STREAM_PER_THREAD ? per_thread_stream(w, *context) : context->legacy;
    return CUDA_SUCCESS;
  }
  for (const auto& [unused, context] : w.contexts) {
    const auto match = context->streams.find(handle);
    if (match == context->streams.end()) continue;
    found = match->second;
    return CUDA_SUCCESS;
  }
  note_use(w, handle);
  return CUDA_ERROR_INVALID_HANDLE;
}

CUresult find_event(World& w, CUevent event, Event*& found) {
  const auto match = w.events.find(number(event));
  if (match == w.events.end()) {
    note_use(w, number(event));
    return CUDA_ERROR_INVALID_HANDLE;
  }
  if (!find_context(w, match->second.context)) return CUDA_ERROR_CONTEXT_IS_DESTROYED;
  found = &match->second;
  return CUDA_SUCCESS;
}

std::vector<StreamPtr> streams_of(const Context& context) {
  std::vector<StreamPtr> all{context.legacy};
  for (const auto& [unused, stream] : context.per_thread) all.push_back(stream);
  for (const auto& [unused, stream] : context.streams) all.push_back(stream);
  return all;
}

}  // namespace fairlap::fakes
