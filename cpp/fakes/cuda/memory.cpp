#include "fakes/cuda/memory.hpp"

#include <sys/mman.h>

#include <optional>

#include "fakes/cuda/blocking.hpp"
#include "fakes/cuda/board.hpp"
#include "fakes/cuda/capture.hpp"
#include "fakes/cuda/enqueue.hpp"
#include "fakes/cuda/lookup.hpp"

// Allocations. Addresses are real, one space for host and device, as unified addressing has it; pages
// come into being when they are touched, so a large device buffer costs nothing.
namespace fairlap::fakes {
namespace {

void* map_pages(std::uint64_t bytes) {
  void* pages =
      mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  return pages == MAP_FAILED ? nullptr : pages;
}

std::uint64_t address_of(const void* memory) { return reinterpret_cast<std::uint64_t>(memory); }

void forget(World& w, std::map<std::uint64_t, Allocation>::iterator entry_of) {
  const Allocation& allocation = entry_of->second;
  if (allocation.is_on_board && allocation.opened_as == 0) forget_export(entry_of->first);
  if (allocation.kind == Allocation::Kind::device && allocation.opened_as == 0) {
    const auto device = static_cast<std::size_t>(allocation.device);
    if (device < w.devices.size()) w.devices[device].memory_used -= allocation.bytes;
  }
  if (allocation.kind != Allocation::Kind::registered && !allocation.is_on_board) {
    munmap(reinterpret_cast<void*>(entry_of->first), allocation.bytes);
  }
  w.allocations.erase(entry_of);
}

// Whether any byte of [address, address + bytes) belongs to a known allocation, which is given.
const Allocation* overlapping(const World& w, std::uint64_t address, std::uint64_t bytes) {
  auto next = w.allocations.lower_bound(address + bytes);
  if (next == w.allocations.begin()) return nullptr;
  const auto& [start, allocation] = *--next;
  return start + allocation.bytes > address ? &allocation : nullptr;
}

// Freeing waits for the device, as the real calls do; so a free inside a closed gate blocks.
CUresult release(World& w, Lock& lock, std::uint64_t address, Allocation::Kind kind, CUresult unknown) {
  const ContextPtr context = current_context(w);
  if (!context) return CUDA_ERROR_INVALID_CONTEXT;
  if (const CUresult error = check_unsafe_call(w); error != CUDA_SUCCESS) return error;
  const auto found = w.allocations.find(address);
  if (found == w.allocations.end() || found->second.kind != kind || found->second.opened_as != 0) {
    if (found == w.allocations.end()) note_use_of_memory(w, address);
    return unknown;
  }
  // The real driver leaves undefined what happens then; here the memory stays, for tests to see.
  if (found->second.is_on_board && is_opened_elsewhere(address)) return CUDA_ERROR_ILLEGAL_STATE;
  if (const CUresult error = wait_for(w, lock, pending_of(w, *context)); error != CUDA_SUCCESS) return error;
  const auto still = w.allocations.find(address);
  if (still == w.allocations.end()) return unknown;
  gave_back_memory(w, address, still->second.bytes);
  forget(w, still);
  return CUDA_SUCCESS;
}

}  // namespace

const Allocation* allocation_at(const World& w, std::uint64_t address, std::uint64_t bytes) {
  auto next = w.allocations.upper_bound(address);
  if (next == w.allocations.begin()) return nullptr;
  const auto& [start, allocation] = *--next;
  return address - start <= allocation.bytes && bytes <= allocation.bytes - (address - start) ? &allocation
                                                                                              : nullptr;
}

const Allocation* memory_used(World& w, std::uint64_t address, std::uint64_t bytes) {
  const Allocation* found = allocation_at(w, address, bytes);
  if (found == nullptr) note_use_of_memory(w, address);
  return found;
}

void free_all_memory(World& w) {
  while (!w.allocations.empty()) forget(w, w.allocations.begin());
}

FAKE_EXPORT CUresult cuMemAlloc_v2(CUdeviceptr* out, std::size_t bytes) {
  return entry("cuMemAlloc_v2", [&](World& w, Lock&) -> CUresult {
    const ContextPtr context = current_context(w);
    if (!context) return CUDA_ERROR_INVALID_CONTEXT;
    if (const CUresult error = check_unsafe_call(w); error != CUDA_SUCCESS) return error;
    if (out == nullptr || bytes == 0) return CUDA_ERROR_INVALID_VALUE;
    Device& device = w.devices[static_cast<std::size_t>(context->device)];
    if (bytes > device.memory_bytes - device.memory_used) return CUDA_ERROR_OUT_OF_MEMORY;
    const std::optional<std::uint64_t> address =
        has_board() ? allocate_on_board(bytes) : std::optional(address_of(map_pages(bytes)));
    if (address.value_or(0) == 0) return CUDA_ERROR_OUT_OF_MEMORY;
    device.memory_used += bytes;
    took_memory(w, *address, bytes);
    w.allocations[*address] = {Allocation::Kind::device, bytes, context->device, has_board()};
    *out = *address;
    return CUDA_SUCCESS;
  });
}

FAKE_EXPORT CUresult cuMemFree_v2(CUdeviceptr address) {
  return entry("cuMemFree_v2", [&](World& w, Lock& lock) -> CUresult {
    if (address == 0) return CUDA_SUCCESS;
    return release(w, lock, address, Allocation::Kind::device, CUDA_ERROR_INVALID_VALUE);
  });
}

FAKE_EXPORT CUresult cuMemGetInfo_v2(std::size_t* free_bytes, std::size_t* total_bytes) {
  return entry("cuMemGetInfo_v2", [&](World& w, Lock&) -> CUresult {
    const ContextPtr context = current_context(w);
    if (!context) return CUDA_ERROR_INVALID_CONTEXT;
    if (free_bytes == nullptr || total_bytes == nullptr) return CUDA_ERROR_INVALID_VALUE;
    const Device& device = w.devices[static_cast<std::size_t>(context->device)];
    *total_bytes = device.memory_bytes;
    *free_bytes = device.memory_bytes - device.memory_used;
    return CUDA_SUCCESS;
  });
}

FAKE_EXPORT CUresult cuMemHostAlloc(void** out, std::size_t bytes, unsigned int flags) {
  return entry("cuMemHostAlloc", [&](World& w, Lock&) -> CUresult {
    constexpr unsigned int kKnownFlags = 7;  // portable, device map, write combined
    const ContextPtr context = current_context(w);
    if (!context) return CUDA_ERROR_INVALID_CONTEXT;
    if (const CUresult error = check_unsafe_call(w); error != CUDA_SUCCESS) return error;
    if (out == nullptr || bytes == 0 || (flags & ~kKnownFlags) != 0) return CUDA_ERROR_INVALID_VALUE;
    *out = map_pages(bytes);
    if (*out == nullptr) return CUDA_ERROR_OUT_OF_MEMORY;
    took_memory(w, address_of(*out), bytes);
    w.allocations[address_of(*out)] = {Allocation::Kind::host, bytes, context->device};
    return CUDA_SUCCESS;
  });
}

FAKE_EXPORT CUresult cuMemFreeHost(void* memory) {
  return entry("cuMemFreeHost", [&](World& w, Lock& lock) -> CUresult {
    if (memory == nullptr) return CUDA_SUCCESS;
    return release(w, lock, address_of(memory), Allocation::Kind::host, CUDA_ERROR_INVALID_VALUE);
  });
}

FAKE_EXPORT CUresult cuMemHostRegister_v2(void* memory, std::size_t bytes, unsigned int flags) {
  return entry("cuMemHostRegister_v2", [&](World& w, Lock&) -> CUresult {
    constexpr unsigned int kKnownFlags = 15;  // portable, device map, I/O memory, read only
    const ContextPtr context = current_context(w);
    if (!context) return CUDA_ERROR_INVALID_CONTEXT;
    if (const CUresult error = check_unsafe_call(w); error != CUDA_SUCCESS) return error;
    if (memory == nullptr || bytes == 0 || (flags & ~kKnownFlags) != 0) return CUDA_ERROR_INVALID_VALUE;
    if (const Allocation* there = overlapping(w, address_of(memory), bytes)) {
      return there->kind == Allocation::Kind::registered ? CUDA_ERROR_HOST_MEMORY_ALREADY_REGISTERED
                                                         : CUDA_ERROR_INVALID_VALUE;
    }
    took_memory(w, address_of(memory), bytes);
    w.allocations[address_of(memory)] = {Allocation::Kind::registered, bytes, context->device};
    return CUDA_SUCCESS;
  });
}

FAKE_EXPORT CUresult cuMemHostUnregister(void* memory) {
  return entry("cuMemHostUnregister", [&](World& w, Lock& lock) -> CUresult {
    if (memory == nullptr) return CUDA_ERROR_INVALID_VALUE;
    // Inside a registration, or memory of another kind: an argument that makes no sense.
    const bool known = overlapping(w, address_of(memory), 1) != nullptr;
    return release(w, lock, address_of(memory), Allocation::Kind::registered,
                   known ? CUDA_ERROR_INVALID_VALUE : CUDA_ERROR_HOST_MEMORY_NOT_REGISTERED);
  });
}

FAKE_EXPORT CUresult cuMemHostGetDevicePointer_v2(CUdeviceptr* out, void* memory, unsigned int flags) {
  return entry("cuMemHostGetDevicePointer_v2", [&](World& w, Lock&) -> CUresult {
    if (!current_context(w)) return CUDA_ERROR_INVALID_CONTEXT;
    const Allocation* allocation = allocation_at(w, address_of(memory), 1);
    const bool on_host = allocation != nullptr && allocation->kind != Allocation::Kind::device;
    if (out == nullptr || flags != 0 || !on_host) return CUDA_ERROR_INVALID_VALUE;
    *out = address_of(memory);
    return CUDA_SUCCESS;
  });
}

}  // namespace fairlap::fakes
