#pragma once

#include <string>

#include "cuda/driver/kernels.hpp"
#include "cuda/sampling/sequence.hpp"

namespace fairlap::cuda {

// Whether events of a whole context are there, wait for every stream and carry the time of the last. Their
// documentation promises the first two only, so all three are tried with work of known length on two private
// streams: the device code spins for it, and where that cannot be loaded fills of memory are timed
// beforehand.
struct ContextEvents {
  bool usable = false;
  std::string why_not;
  double idle_span_ns = 0.0;  // between two of them around nothing
};

ContextEvents probe_context_events(const BorrowedContext& context, const Kernels* kernels);

// How hidden work is looked for, and how long after the stop event the context may still seem busy by the
// looking alone.
struct Guard {
  GuardKind kind = GuardKind::none;
  double allowed_ns = 0.0;
};

// `stream` is where the stop event goes; with `by_context` start, stop and guard are events of the context.
// `with_completion`: the work has one, so its framework may enqueue functions of the host.
Guard calibrate_guard(const BorrowedStream& stream, GuardKind kind, bool by_context, bool with_completion);

// Waits for the whole context and records an event after it.
void record_after_idle(const BorrowedStream& stream, bool by_context, CUevent event);

void record(const BorrowedStream& stream, bool by_context, CUevent event);

}  // namespace fairlap::cuda
