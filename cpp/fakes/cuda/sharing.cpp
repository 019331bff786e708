#include <unistd.h>

#include <cstring>

#include "fakes/cuda/board.hpp"
#include "fakes/cuda/capture.hpp"
#include "fakes/cuda/entry.hpp"
#include "fakes/cuda/exports.hpp"
#include "fakes/cuda/lookup.hpp"
#include "fakes/cuda/memory.hpp"

// Memory of one process that another one opens by a handle. Errors are the documented ones, and
// CUDA_ERROR_INVALID_CONTEXT for a handle of the same process, which is not documented and what drivers give.
namespace fairlap::fakes {
namespace {

constexpr std::uint64_t kMagic = 0x66616b65'69706321;

struct Contents {
  std::uint64_t magic = kMagic;
  std::uint64_t id = 0;
};

}  // namespace

FAKE_EXPORT CUresult cuIpcGetMemHandle(CUipcMemHandle* handle, CUdeviceptr address) {
  return entry("cuIpcGetMemHandle", [&](World& w, Lock&) -> CUresult {
    if (!current_context(w)) return CUDA_ERROR_INVALID_CONTEXT;
    if (!has_board()) return CUDA_ERROR_NOT_SUPPORTED;
    const auto found = w.allocations.find(address);
    const bool is_ours = found != w.allocations.end() && found->second.kind == Allocation::Kind::device &&
                         found->second.opened_as == 0;
    if (handle == nullptr || !is_ours) return CUDA_ERROR_INVALID_VALUE;
    const std::optional<Export> made = export_from_board(address, found->second.bytes);
    if (!made) return CUDA_ERROR_OUT_OF_MEMORY;
    const Contents contents{.id = made->id};
    *handle = {};
    std::memcpy(handle->reserved, &contents, sizeof contents);
    return CUDA_SUCCESS;
  });
}

FAKE_EXPORT CUresult cuIpcOpenMemHandle_v2(CUdeviceptr* out, CUipcMemHandle handle, unsigned int flags) {
  return entry("cuIpcOpenMemHandle_v2", [&](World& w, Lock&) -> CUresult {
    constexpr unsigned int kLazyPeerAccess = 1;
    const ContextPtr context = current_context(w);
    if (!context) return CUDA_ERROR_INVALID_CONTEXT;
    if (const CUresult error = check_unsafe_call(w); error != CUDA_SUCCESS) return error;
    if (!has_board()) return CUDA_ERROR_NOT_SUPPORTED;
    if (out == nullptr || flags != kLazyPeerAccess) return CUDA_ERROR_INVALID_VALUE;
    Contents contents;
    std::memcpy(&contents, handle.reserved, sizeof contents);
    const std::optional<Export> known = exported_as(contents.id);
    if (contents.magic != kMagic || !known) return CUDA_ERROR_INVALID_HANDLE;
    if (const auto there = w.allocations.find(known->block);
        there != w.allocations.end() && there->second.opened_as == contents.id) {
      ++there->second.times_opened;
      *out = known->address;
      return CUDA_SUCCESS;
    }
    if (known->pid == ::getpid()) return CUDA_ERROR_INVALID_CONTEXT;
    Allocation allocation{Allocation::Kind::device, known->block_bytes, context->device};
    allocation.is_on_board = true;
    allocation.opened_as = contents.id;
    allocation.times_opened = 1;
    w.allocations[known->block] = allocation;
    note_opened(contents.id);
    *out = known->address;
    return CUDA_SUCCESS;
  });
}

FAKE_EXPORT CUresult cuIpcCloseMemHandle(CUdeviceptr address) {
  return entry("cuIpcCloseMemHandle", [&](World& w, Lock&) -> CUresult {
    if (!current_context(w)) return CUDA_ERROR_INVALID_CONTEXT;
    const auto found = w.allocations.find(address / kBlockBytes * kBlockBytes);
    if (found == w.allocations.end() || found->second.opened_as == 0) return CUDA_ERROR_INVALID_VALUE;
    if (--found->second.times_opened > 0) return CUDA_SUCCESS;
    note_closed(found->second.opened_as);
    w.allocations.erase(found);
    return CUDA_SUCCESS;
  });
}

}  // namespace fairlap::fakes
