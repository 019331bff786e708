#pragma once

#include "fakes/cuda/entry.hpp"

// Stream capture: what is recorded instead of run, and which calls spoil it.
namespace fairlap::fakes {

CUresult capture_task(World& w, Stream& stream, Task task);

// An event recorded or waited for in a capturing stream moves dependencies, not work.
CUresult capture_event_record(Stream& stream, Event& event);
CUresult capture_event_wait(World& w, Stream& stream, const Event& event);

// The legacy default stream must not be used while a blocking stream of its context is capturing.
CapturePtr implicit_dependency(World& w, const Stream& stream);
CUresult check_implicit_dependency(World& w, const Stream& stream);

// Calls that may synchronise or allocate spoil the captures that forbid them to this thread.
CUresult check_unsafe_call(World& w);

// Calls that wait for a whole context spoil every capture of it, in any mode.
CUresult check_context_call(World& w, Handle context);

// Calls that ask after a stream that is capturing spoil that capture.
CUresult check_stream_call(Stream& stream);

}  // namespace fairlap::fakes
