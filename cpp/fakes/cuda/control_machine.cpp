#include "fakes/cuda/contexts.hpp"
#include "fakes/cuda/entry.hpp"
#include "fakes/cuda/lookup.hpp"

// fake_cuda.h: the machine, its contexts and streams, and what was left behind.
namespace fairlap::fakes {
namespace {

Device* device_at(World& w, int device) {
  const bool exists = device >= 0 && static_cast<std::size_t>(device) < w.devices.size();
  return exists ? &w.devices[static_cast<std::size_t>(device)] : nullptr;
}

std::int64_t count_allocations(const World& w, Allocation::Kind kind, bool bytes) {
  std::int64_t count = 0;
  for (const auto& [unused, allocation] : w.allocations) {
    if (allocation.kind == kind) count += bytes ? static_cast<std::int64_t>(allocation.bytes) : 1;
  }
  return count;
}

std::int64_t count_client_streams(const World& w) {
  std::int64_t count = 0;
  for (const auto& [unused, context] : w.contexts) {
    for (const auto& [handle, stream] : context->streams) count += stream->from_framework ? 0 : 1;
  }
  return count;
}

std::int64_t count_retains(const World& w) {
  std::int64_t count = 0;
  for (const Device& device : w.devices) count += device.retains;
  return count;
}

// Those beyond the first of each context.
std::int64_t count_further_modules(const World& w) {
  std::set<Handle> contexts;
  for (const auto& [unused, module] : w.modules) contexts.insert(module.context);
  return static_cast<std::int64_t>(w.modules.size() - contexts.size());
}

}  // namespace

#pragma GCC visibility push(default)
extern "C" {

void fake_cuda_reset(void) {
  const Lock lock = locked();
  reset_world(world());
}

void fake_cuda_set_device_count(int count) {
  const Lock lock = locked();
  auto& devices = world().devices;
  while (static_cast<int>(devices.size()) > count && !devices.empty()) {
    destroy_context(world(), devices.back().primary);
    devices.pop_back();
  }
  while (static_cast<int>(devices.size()) < count) devices.push_back(new_device(devices.size()));
}

void fake_cuda_set_driver_version(int version) {
  const Lock lock = locked();
  world().driver_version = version;
}

void fake_cuda_set_device_attribute(int device, int attribute, int value) {
  const Lock lock = locked();
  if (Device* found = device_at(world(), device)) found->attributes[attribute] = value;
}

void fake_cuda_set_device_memory(int device, uint64_t bytes) {
  const Lock lock = locked();
  if (Device* found = device_at(world(), device)) found->memory_bytes = bytes;
}

void fake_cuda_set_aside_for_persisting(int device, uint64_t bytes) {
  const Lock lock = locked();
  if (Device* found = device_at(world(), device)) found->persisting_l2_bytes = bytes;
}

void fake_cuda_set_device_slot(int device, int slot) {
  const Lock lock = locked();
  if (Device* found = device_at(world(), device)) found->slot = slot;
}

void fake_cuda_set_device_uuid(int device, const char* digits) {
  const Lock lock = locked();
  if (Device* found = device_at(world(), device)) found->uuid = digits;
}

void fake_cuda_set_launches_block(int block) {
  const Lock lock = locked();
  world().launches_block = block != 0;
}

void fake_cuda_set_jit(int present) {
  const Lock lock = locked();
  world().has_jit = present != 0;
}

void fake_cuda_set_context_events_of(int whose) {
  const Lock lock = locked();
  world().context_events_of = whose;
}

void fake_cuda_set_stream_waits(int behaviour) {
  const Lock lock = locked();
  world().stream_waits = static_cast<StreamWaits>(behaviour);
}

void fake_cuda_set_globaltimer_step(int64_t ns) {
  const Lock lock = locked();
  world().globaltimer_step_ns = ns;
}

void fake_cuda_hide_function(const char* function) {
  const Lock lock = locked();
  world().hidden_functions.insert(function);
}

uint64_t fake_cuda_activate_primary_context(int device) {
  const Lock lock = locked();
  Device* found = device_at(world(), device);
  if (found == nullptr) return 0;
  found->held_by_framework = true;
  return activate_primary(world(), device)->handle;
}

void fake_cuda_deactivate_primary_context(int device) {
  const Lock lock = locked();
  Device* found = device_at(world(), device);
  if (found == nullptr) return;
  found->held_by_framework = false;
  drop_primary_if_unused(world(), device);
}

uint64_t fake_cuda_create_context(int device) {
  const Lock lock = locked();
  return device_at(world(), device) == nullptr ? 0 : new_context(world(), device, false)->handle;
}

int fake_cuda_destroy_context(uint64_t context) {
  const Lock lock = locked();
  if (!find_context(world(), context)) return CUDA_ERROR_INVALID_CONTEXT;
  destroy_context(world(), context);
  return CUDA_SUCCESS;
}

void fake_cuda_make_current(uint64_t context) {
  const Lock lock = locked();
  std::vector<Handle>& stack = context_stack(world());
  stack.clear();
  if (context != 0) stack.push_back(context);
}

uint64_t fake_cuda_current_context(void) {
  const Lock lock = locked();
  const std::vector<Handle>& stack = context_stack(world());
  return stack.empty() ? 0 : stack.back();
}

uint64_t fake_cuda_create_stream(uint64_t context, int non_blocking) {
  const Lock lock = locked();
  const ContextPtr found = find_context(world(), context);
  if (!found) return 0;
  const StreamPtr stream = new_stream(world(), *found, non_blocking != 0, true);
  found->streams[stream->handle] = stream;
  return stream->handle;
}

int fake_cuda_destroy_stream(uint64_t stream) {
  const Lock lock = locked();
  StreamPtr found;
  if (const CUresult error = find_stream(world(), pointer<CUstream>(stream), found); error != CUDA_SUCCESS)
    return error;
  const ContextPtr context = find_context(world(), found->context);
  if (pending_count(world(), *found) > 0) context->orphans.push_back(found->last());
  context->streams.erase(stream);
  return CUDA_SUCCESS;
}

int64_t fake_cuda_outstanding(const char* kind) {
  const Lock lock = locked();
  const World& w = world();
  const std::string name = kind == nullptr ? "" : kind;
  if (name == "streams") return count_client_streams(w);
  if (name == "events") return static_cast<std::int64_t>(w.events.size());
  if (name == "device_allocations") return count_allocations(w, Allocation::Kind::device, false);
  if (name == "device_bytes") return count_allocations(w, Allocation::Kind::device, true);
  if (name == "host_allocations") return count_allocations(w, Allocation::Kind::host, false);
  if (name == "host_registrations") return count_allocations(w, Allocation::Kind::registered, false);
  if (name == "graphs") return static_cast<std::int64_t>(w.graphs.size());
  if (name == "graph_execs") return static_cast<std::int64_t>(w.graph_execs.size());
  if (name == "modules") return static_cast<std::int64_t>(w.modules.size());
  if (name == "further_modules") return count_further_modules(w);
  if (name == "captures") return static_cast<std::int64_t>(w.captures.size());
  if (name == "primary_retains") return count_retains(w);
  if (name == "pushed_contexts") return w.pushed_contexts;
  if (name == "peer_accesses") return static_cast<std::int64_t>(w.peer_accesses.size());
  return -1;
}

int64_t fake_cuda_misuses(void) {
  const Lock lock = locked();
  return static_cast<std::int64_t>(world().misuses.size());
}

const char* fake_cuda_misuse(int64_t number) {
  const Lock lock = locked();
  const auto& misuses = world().misuses;
  const auto place = static_cast<std::size_t>(number);
  return place < misuses.size() ? intern(misuses[place]) : nullptr;
}

uint32_t fake_cuda_stream_id(uint64_t context, uint64_t stream, int per_thread) {
  const Lock lock = locked();
  const ContextPtr found = find_context(world(), context);
  if (!found) return 0;
  if (stream == STREAM_PER_THREAD || (stream == 0 && per_thread != 0))
    return per_thread_stream(world(), *found)->id;
  if (stream == 0 || stream == STREAM_LEGACY) return found->legacy->id;
  const auto match = found->streams.find(stream);
  return match == found->streams.end() ? 0 : match->second->id;
}

uint32_t fake_cuda_context_id(uint64_t context) {
  const Lock lock = locked();
  const ContextPtr found = find_context(world(), context);
  return found ? found->id : 0;
}

int fake_cuda_context_device(uint64_t context) {
  const Lock lock = locked();
  const ContextPtr found = find_context(world(), context);
  return found ? found->device : -1;
}

}  // extern "C"
#pragma GCC visibility pop
}  // namespace fairlap::fakes
