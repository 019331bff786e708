#include "fakes/cuda/contexts.hpp"

#include <algorithm>

#include "fakes/cuda/blocking.hpp"
#include "fakes/cuda/capture.hpp"
#include "fakes/cuda/enqueue.hpp"
#include "fakes/cuda/lookup.hpp"

namespace fairlap::fakes {

ContextPtr new_context(World& w, int device, bool primary) {
  auto context = std::make_shared<Context>();
  context->handle = w.new_handle();
  context->id = ++w.last_context_id;
  context->device = device;
  context->primary = primary;
  context->legacy = new_stream(w, *context, false, true);
  context->legacy->legacy = true;
  w.contexts[context->handle] = context;
  return context;
}

void destroy_context(World& w, Handle handle) {
  const ContextPtr context = find_context(w, handle);
  if (!context) return;
  Device& device = w.devices[static_cast<std::size_t>(context->device)];
  if (device.primary == handle) device.primary = 0;
  std::erase_if(w.captures, [&](const CapturePtr& capture) { return capture->context == handle; });
  std::erase_if(w.modules, [&](const auto& module) { return module.second.context == handle; });
  std::erase_if(w.peer_accesses,
                [&](const auto& access) { return access.first == handle || access.second == handle; });
  w.contexts.erase(handle);
}

ContextPtr activate_primary(World& w, int device) {
  Handle& primary = w.devices[static_cast<std::size_t>(device)].primary;
  if (primary == 0) primary = new_context(w, device, true)->handle;
  return find_context(w, primary);
}

void drop_primary_if_unused(World& w, int device) {
  const Device& state = w.devices[static_cast<std::size_t>(device)];
  if (state.retains == 0 && !state.held_by_framework) destroy_context(w, state.primary);
}

namespace {

bool exists(const World& w, CUdevice device) {
  return device >= 0 && static_cast<std::size_t>(device) < w.devices.size();
}

bool are_linked(const World& w, int device, int peer) {
  return w.peer_links.contains({device, peer}) || w.peer_links.contains({peer, device});
}

// One limit is modelled. Real drivers know numbers up to 9, of which the last is refused in this way.
CUresult check_limit(CUlimit limit) {
  constexpr CUlimit kLastNumber = 9;
  if (limit < 0 || limit > kLastNumber) return CUDA_ERROR_INVALID_VALUE;
  return limit == CU_LIMIT_PERSISTING_L2_CACHE_SIZE ? CUDA_SUCCESS : CUDA_ERROR_UNSUPPORTED_LIMIT;
}

// The streams that an event of the context waits for.
std::vector<OpPtr> recorded_by_context(World& w, Context& context) {
  std::vector<OpPtr> pending = pending_of(w, context);
  if (w.context_events_of == FAKE_CUDA_OF_ALL || pending.size() < 2) return pending;
  if (w.context_events_of == FAKE_CUDA_OF_FIRST_MADE) return {pending.front()};
  if (w.context_events_of == FAKE_CUDA_OF_LAST_MADE) return {pending.back()};
  const auto ends_first = [](const OpPtr& a, const OpPtr& b) { return a->end_ns < b->end_ns; };
  return {*std::min_element(pending.begin(), pending.end(), ends_first)};
}

}  // namespace

FAKE_EXPORT CUresult cuDevicePrimaryCtxGetState(CUdevice device, unsigned int* flags, int* active) {
  return entry("cuDevicePrimaryCtxGetState", [&](World& w, Lock&) -> CUresult {
    if (!exists(w, device)) return CUDA_ERROR_INVALID_DEVICE;
    if (flags == nullptr || active == nullptr) return CUDA_ERROR_INVALID_VALUE;
    *flags = 0;
    *active = w.devices[static_cast<std::size_t>(device)].primary != 0 ? 1 : 0;
    return CUDA_SUCCESS;
  });
}

FAKE_EXPORT CUresult cuDevicePrimaryCtxRetain(CUcontext* context, CUdevice device) {
  return entry("cuDevicePrimaryCtxRetain", [&](World& w, Lock&) -> CUresult {
    if (!exists(w, device)) return CUDA_ERROR_INVALID_DEVICE;
    if (context == nullptr) return CUDA_ERROR_INVALID_VALUE;
    ++w.devices[static_cast<std::size_t>(device)].retains;
    *context = pointer<CUcontext>(activate_primary(w, device)->handle);
    return CUDA_SUCCESS;
  });
}

FAKE_EXPORT CUresult cuDevicePrimaryCtxRelease_v2(CUdevice device) {
  return entry("cuDevicePrimaryCtxRelease_v2", [&](World& w, Lock&) -> CUresult {
    if (!exists(w, device)) return CUDA_ERROR_INVALID_DEVICE;
    Device& state = w.devices[static_cast<std::size_t>(device)];
    if (state.retains == 0) return CUDA_ERROR_INVALID_CONTEXT;
    --state.retains;
    drop_primary_if_unused(w, device);
    return CUDA_SUCCESS;
  });
}

FAKE_EXPORT CUresult cuCtxGetCurrent(CUcontext* context) {
  return entry("cuCtxGetCurrent", [&](World& w, Lock&) -> CUresult {
    if (context == nullptr) return CUDA_ERROR_INVALID_VALUE;
    const std::vector<Handle>& stack = context_stack(w);
    *context = stack.empty() ? nullptr : pointer<CUcontext>(stack.back());
    return CUDA_SUCCESS;
  });
}

FAKE_EXPORT CUresult cuCtxPushCurrent_v2(CUcontext context) {
  return entry("cuCtxPushCurrent_v2", [&](World& w, Lock&) -> CUresult {
    if (context == nullptr) return CUDA_ERROR_INVALID_VALUE;
    if (!find_context(w, number(context))) return CUDA_ERROR_INVALID_CONTEXT;
    context_stack(w).push_back(number(context));
    ++w.pushed_contexts;
    return CUDA_SUCCESS;
  });
}

FAKE_EXPORT CUresult cuCtxPopCurrent_v2(CUcontext* context) {
  return entry("cuCtxPopCurrent_v2", [&](World& w, Lock&) -> CUresult {
    std::vector<Handle>& stack = context_stack(w);
    if (stack.empty()) return CUDA_ERROR_INVALID_CONTEXT;
    if (context != nullptr) *context = pointer<CUcontext>(stack.back());
    stack.pop_back();
    --w.pushed_contexts;
    return CUDA_SUCCESS;
  });
}

FAKE_EXPORT CUresult cuCtxGetDevice(CUdevice* device) {
  return entry("cuCtxGetDevice", [&](World& w, Lock&) -> CUresult {
    const ContextPtr context = current_context(w);
    if (!context) return CUDA_ERROR_INVALID_CONTEXT;
    if (device == nullptr) return CUDA_ERROR_INVALID_VALUE;
    *device = context->device;
    return CUDA_SUCCESS;
  });
}

FAKE_EXPORT CUresult cuCtxGetId(CUcontext context, unsigned long long* id) {
  return entry("cuCtxGetId", [&](World& w, Lock&) -> CUresult {
    const ContextPtr found = context == nullptr ? current_context(w) : find_context(w, number(context));
    if (!found) return CUDA_ERROR_INVALID_CONTEXT;
    if (id == nullptr) return CUDA_ERROR_INVALID_VALUE;
    *id = found->id;
    return CUDA_SUCCESS;
  });
}

FAKE_EXPORT CUresult cuCtxGetLimit(std::size_t* value, CUlimit limit) {
  return entry("cuCtxGetLimit", [&](World& w, Lock&) -> CUresult {
    const ContextPtr context = current_context(w);
    if (!context) return CUDA_ERROR_INVALID_CONTEXT;
    if (value == nullptr) return CUDA_ERROR_INVALID_VALUE;
    if (const CUresult error = check_limit(limit); error != CUDA_SUCCESS) return error;
    *value = w.devices[static_cast<std::size_t>(context->device)].persisting_l2_bytes;
    return CUDA_SUCCESS;
  });
}

FAKE_EXPORT CUresult cuCtxResetPersistingL2Cache() {
  return entry("cuCtxResetPersistingL2Cache", [&](World& w, Lock&) -> CUresult {
    const ContextPtr context = current_context(w);
    if (!context) return CUDA_ERROR_INVALID_CONTEXT;
    if (!pending_of(w, *context).empty()) ++w.resets_while_busy;
    return CUDA_SUCCESS;
  });
}

FAKE_EXPORT CUresult cuCtxSynchronize() {
  return entry("cuCtxSynchronize", [&](World& w, Lock& lock) -> CUresult {
    const ContextPtr context = current_context(w);
    if (!context) return CUDA_ERROR_INVALID_CONTEXT;
    if (const CUresult error = check_context_call(w, context->handle); error != CUDA_SUCCESS) return error;
    if (const CUresult error = check_unsafe_call(w); error != CUDA_SUCCESS) return error;
    return wait_for(w, lock, pending_of(w, *context));
  });
}

FAKE_EXPORT CUresult cuCtxRecordEvent(CUcontext hContext, CUevent hEvent) {
  return entry("cuCtxRecordEvent", [&](World& w, Lock&) -> CUresult {
    const ContextPtr context = find_context(w, number(hContext));
    if (!context) return CUDA_ERROR_INVALID_CONTEXT;
    Event* event = nullptr;
    if (const CUresult error = find_event(w, hEvent, event); error != CUDA_SUCCESS) return error;
    if (event->context != context->handle) return CUDA_ERROR_INVALID_HANDLE;
    if (const CUresult error = check_context_call(w, context->handle); error != CUDA_SUCCESS) return error;
    event->record = make_op(w, *context->legacy, Task{}, 0, 0);
    event->capture = nullptr;
    w.timeline.submit(event->record, recorded_by_context(w, *context));
    return CUDA_SUCCESS;
  });
}

FAKE_EXPORT CUresult cuCtxWaitEvent(CUcontext hContext, CUevent hEvent) {
  return entry("cuCtxWaitEvent", [&](World& w, Lock&) -> CUresult {
    const ContextPtr context = find_context(w, number(hContext));
    if (!context) return CUDA_ERROR_INVALID_CONTEXT;
    Event* event = nullptr;
    if (const CUresult error = find_event(w, hEvent, event); error != CUDA_SUCCESS) return error;
    if (const CUresult error = check_context_call(w, context->handle); error != CUDA_SUCCESS) return error;
    auto barrier = std::make_shared<Op>();
    w.timeline.submit(barrier, {context->barrier, event->record});
    context->barrier = barrier;
    return CUDA_SUCCESS;
  });
}

FAKE_EXPORT CUresult cuDeviceCanAccessPeer(int* can, CUdevice device, CUdevice peer) {
  return entry("cuDeviceCanAccessPeer", [&](World& w, Lock&) -> CUresult {
    if (!exists(w, device) || !exists(w, peer)) return CUDA_ERROR_INVALID_DEVICE;
    if (can == nullptr) return CUDA_ERROR_INVALID_VALUE;
    *can = device != peer && are_linked(w, device, peer) ? 1 : 0;
    return CUDA_SUCCESS;
  });
}

FAKE_EXPORT CUresult cuCtxEnablePeerAccess(CUcontext peer_context, unsigned int flags) {
  return entry("cuCtxEnablePeerAccess", [&](World& w, Lock&) -> CUresult {
    const ContextPtr context = current_context(w);
    const ContextPtr peer = find_context(w, number(peer_context));
    if (!context || !peer || context == peer) return CUDA_ERROR_INVALID_CONTEXT;
    if (flags != 0) return CUDA_ERROR_INVALID_VALUE;
    if (!are_linked(w, context->device, peer->device)) return CUDA_ERROR_PEER_ACCESS_UNSUPPORTED;
    const bool is_new = w.peer_accesses.insert({context->handle, peer->handle}).second;
    return is_new ? CUDA_SUCCESS : CUDA_ERROR_PEER_ACCESS_ALREADY_ENABLED;
  });
}

FAKE_EXPORT CUresult cuCtxDisablePeerAccess(CUcontext peer_context) {
  return entry("cuCtxDisablePeerAccess", [&](World& w, Lock&) -> CUresult {
    const ContextPtr context = current_context(w);
    const ContextPtr peer = find_context(w, number(peer_context));
    if (!context || !peer) return CUDA_ERROR_INVALID_CONTEXT;
    const bool was_there = w.peer_accesses.erase({context->handle, peer->handle}) > 0;
    return was_there ? CUDA_SUCCESS : CUDA_ERROR_PEER_ACCESS_NOT_ENABLED;
  });
}

}  // namespace fairlap::fakes
