#pragma once

#include "fakes/cuda/entry.hpp"

// From the handles a client passes to the objects they name, with the driver's errors.
namespace fairlap::fakes {

// The calling thread's current context, or null.
ContextPtr current_context(World& w);
// The calling thread's stack of contexts, top at the back. Empty after a reset of the world.
std::vector<Handle>& context_stack(const World& w);

ContextPtr find_context(World& w, Handle context);

// Accepts the default streams 0, 1 and 2 of the calling thread's context. Gives CUDA_SUCCESS and the
// stream, or the error.
CUresult find_stream(World& w, CUstream stream, StreamPtr& found);
CUresult find_event(World& w, CUevent event, Event*& found);

StreamPtr per_thread_stream(World& w, Context& context);
StreamPtr new_stream(World& w, Context& context, bool non_blocking, bool from_framework);

// Every stream that `context` has, default streams included.
std::vector<StreamPtr> streams_of(const Context& context);

}  // namespace fairlap::fakes
