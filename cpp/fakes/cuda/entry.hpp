#pragma once

#include <mutex>
#include <string_view>

#include "cuda/driver/driver_abi.hpp"
#include "fakes/cuda/board.hpp"
#include "fakes/cuda/costs.hpp"
#include "fakes/cuda/misuse.hpp"
#include "fakes/cuda/world.hpp"

// What every driver function does before its own work: lock, look at the gates, pay the cost of the
// call, be counted, and fail when a test asked for it.
namespace fairlap::fakes {

using namespace fairlap::cuda;  // the fake is written in the driver's own types

// Errors that only the fake gives; the engine does not distinguish them.
constexpr CUresult CUDA_ERROR_ILLEGAL_STATE = 401;
constexpr CUresult CUDA_ERROR_HOST_MEMORY_ALREADY_REGISTERED = 712;
constexpr CUresult CUDA_ERROR_HOST_MEMORY_NOT_REGISTERED = 713;
constexpr CUresult CUDA_ERROR_NO_BINARY_FOR_GPU = 209;
constexpr CUresult CUDA_ERROR_JIT_COMPILER_NOT_FOUND = 221;

using Lock = std::unique_lock<std::mutex>;

// Held while anything of the world is looked at or changed.
inline Lock locked() { return Lock(world().mutex); }

enum class Needs { nothing, initialised };

template <class Body>
CUresult entry(const char* function, Needs needs, Body body) {
  World& w = world();
  Lock lock(w.mutex);
  set_call(function);
  if (!std::string_view(function).ends_with("Query")) w.look_ns = 0;
  w.timeline.observe();
  w.timeline.advance_by(cost_ns(w.costs_ns, function));
  if (const auto error = w.faults.enter(function)) return *error;
  if (needs == Needs::initialised && !w.initialised) return CUDA_ERROR_NOT_INITIALIZED;
  if (needs == Needs::initialised && w.poison != 0) return w.poison;
  const CUresult result = body(w, lock);
  publish_work(w);
  return result;
}

template <class Body>
CUresult entry(const char* function, Body body) {
  return entry(function, Needs::initialised, body);
}

// The driver's opaque pointers are our handle numbers; nothing is ever read through them.
template <class Pointer>
Handle number(Pointer handle) {
  return reinterpret_cast<Handle>(handle);
}
template <class Pointer>
Pointer pointer(Handle handle) {
  return reinterpret_cast<Pointer>(handle);
}

}  // namespace fairlap::fakes

#define FAKE_EXPORT extern "C" __attribute__((visibility("default")))
