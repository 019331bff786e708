#include <algorithm>
#include <cstring>

#include "fakes/cuda/blocking.hpp"
#include "fakes/cuda/enqueue.hpp"
#include "fakes/cuda/lookup.hpp"
#include "fakes/cuda/memory.hpp"
#include "fakes/cuda/transfers.hpp"

// Copies and fills. Their time follows from their size; contents move for buffers up to kTruthfulBytes.
namespace fairlap::fakes {
namespace {

constexpr double kDeviceBytesPerS = 2e12;  // within the device

// CUPTI's numbers for the kinds of copies.
constexpr int kHostToDevice = 1;
constexpr int kDeviceToHost = 2;
constexpr int kDeviceToDevice = 8;
constexpr int kHostToHost = 9;
constexpr int kPeerToPeer = 10;

std::int64_t span_ns(const World& w, std::uint64_t bytes, double bytes_per_s) {
  return w.copy_latency_ns + static_cast<std::int64_t>(static_cast<double>(bytes) * 1e9 / bytes_per_s);
}

std::uint8_t* bytes_at(std::uint64_t address) { return reinterpret_cast<std::uint8_t*>(address); }

// A fill of `count` words of `width` bytes each.
CUresult fill(World& w, CUstream hStream, CUdeviceptr address, std::uint32_t value, std::size_t width,
              std::size_t count) {
  StreamPtr stream;
  if (!current_context(w)) return CUDA_ERROR_INVALID_CONTEXT;
  if (const CUresult error = find_stream(w, hStream, stream); error != CUDA_SUCCESS) return error;
  const std::uint64_t bytes = width * count;
  if (address % width != 0 || memory_used(w, address, bytes) == nullptr) return CUDA_ERROR_INVALID_VALUE;
  Task task;
  task.duration_ns = span_ns(w, bytes, kDeviceBytesPerS);
  if (bytes <= kTruthfulBytes) {
    task.effect = [=](const Op&) {
      for (std::size_t i = 0; i < count; ++i) std::memcpy(bytes_at(address) + i * width, &value, width);
    };
  }
  task.activity = fill_activity(bytes, value);
  return enqueue(w, *stream, std::move(task));
}

CUresult copy(World& w, Lock* blocking, CUdeviceptr to, CUdeviceptr from, std::size_t bytes,
              CUstream hStream) {
  StreamPtr stream;
  if (!current_context(w)) return CUDA_ERROR_INVALID_CONTEXT;
  if (const CUresult error = find_stream(w, hStream, stream); error != CUDA_SUCCESS) return error;
  const auto on_device = [&w, bytes](CUdeviceptr address) {
    const Allocation* allocation = allocation_at(w, address, bytes);
    return allocation != nullptr && allocation->kind == Allocation::Kind::device;
  };
  const bool to_device = on_device(to);
  const bool from_device = on_device(from);
  Task task;
  task.duration_ns = span_ns(w, bytes,
                             to_device && from_device ? kDeviceBytesPerS
                             : to_device              ? w.to_device_bytes_per_s
                                                      : w.from_device_bytes_per_s);
  if (bytes <= kTruthfulBytes) {
    task.effect = [=](const Op&) { std::memcpy(bytes_at(to), bytes_at(from), bytes); };
  }
  const int kind = to_device ? (from_device ? kDeviceToDevice : kHostToDevice)
                             : (from_device ? kDeviceToHost : kHostToHost);
  task.activity = copy_activity(kind, bytes);
  if (const CUresult error = enqueue(w, *stream, std::move(task)); error != CUDA_SUCCESS) return error;
  return blocking == nullptr ? CUDA_SUCCESS : wait_for(w, *blocking, {stream->last()});
}

CUresult checked_copy(World& w, Lock* blocking, CUdeviceptr to, bool to_device, CUdeviceptr from,
                      bool from_device, std::size_t bytes, CUstream stream) {
  const auto bad = [&w, bytes](CUdeviceptr address, bool must_be_on_device) {
    return must_be_on_device && memory_used(w, address, bytes) == nullptr;
  };
  if (bad(to, to_device) || bad(from, from_device)) return CUDA_ERROR_INVALID_VALUE;
  return copy(w, blocking, to, from, bytes, stream);
}

bool has_access(const World& w, const Context& from, const Context& to) {
  return w.peer_accesses.contains({from.handle, to.handle}) ||
         w.peer_accesses.contains({to.handle, from.handle});
}

// Through the host a copy goes over both links, one after the other.
std::int64_t peer_span_ns(const World& w, const Context& from, const Context& to, std::uint64_t bytes) {
  const auto link = w.peer_links.find({from.device, to.device});
  if (from.device == to.device) return span_ns(w, bytes, kDeviceBytesPerS);
  if (link != w.peer_links.end() && has_access(w, from, to)) return span_ns(w, bytes, link->second);
  return span_ns(w, bytes, w.from_device_bytes_per_s) + span_ns(w, bytes, w.to_device_bytes_per_s);
}

CUdeviceptr address_of(const void* memory) { return reinterpret_cast<CUdeviceptr>(memory); }

}  // namespace

fake_cuda_activity copy_activity(int copy_kind, std::uint64_t bytes) {
  fake_cuda_activity activity{};
  activity.kind = copy_kind == kPeerToPeer ? 22 : 1;
  activity.copy_kind = copy_kind;
  activity.bytes = bytes;
  return activity;
}

fake_cuda_activity fill_activity(std::uint64_t bytes, std::uint32_t value) {
  fake_cuda_activity activity{};
  activity.kind = 2;
  activity.bytes = bytes;
  activity.fill_value = value;
  return activity;
}

FAKE_EXPORT CUresult cuMemsetD32Async(CUdeviceptr address, unsigned int value, std::size_t count,
                                      CUstream stream) {
  return entry("cuMemsetD32Async",
               [&](World& w, Lock&) -> CUresult { return fill(w, stream, address, value, 4, count); });
}

FAKE_EXPORT CUresult cuMemcpyHtoDAsync_v2(CUdeviceptr to, const void* from, std::size_t bytes,
                                          CUstream stream) {
  return entry("cuMemcpyHtoDAsync_v2", [&](World& w, Lock&) -> CUresult {
    return checked_copy(w, nullptr, to, true, address_of(from), false, bytes, stream);
  });
}

FAKE_EXPORT CUresult cuMemcpyDtoHAsync_v2(void* to, CUdeviceptr from, std::size_t bytes, CUstream stream) {
  return entry("cuMemcpyDtoHAsync_v2", [&](World& w, Lock&) -> CUresult {
    return checked_copy(w, nullptr, address_of(to), false, from, true, bytes, stream);
  });
}

FAKE_EXPORT CUresult cuMemcpyDtoDAsync_v2(CUdeviceptr to, CUdeviceptr from, std::size_t bytes,
                                          CUstream stream) {
  return entry("cuMemcpyDtoDAsync_v2", [&](World& w, Lock&) -> CUresult {
    return checked_copy(w, nullptr, to, true, from, true, bytes, stream);
  });
}

FAKE_EXPORT CUresult cuMemcpyPeerAsync(CUdeviceptr to, CUcontext to_context, CUdeviceptr from,
                                       CUcontext from_context, std::size_t bytes, CUstream hStream) {
  return entry("cuMemcpyPeerAsync", [&](World& w, Lock&) -> CUresult {
    if (!current_context(w)) return CUDA_ERROR_INVALID_CONTEXT;
    const ContextPtr target = find_context(w, number(to_context));
    const ContextPtr source = find_context(w, number(from_context));
    if (!target || !source) return CUDA_ERROR_INVALID_CONTEXT;
    const auto is_of = [&](CUdeviceptr address, const Context& context) {
      const Allocation* const memory = memory_used(w, address, bytes);
      return memory != nullptr && memory->kind == Allocation::Kind::device &&
             memory->device == context.device;
    };
    if (!is_of(to, *target) || !is_of(from, *source)) return CUDA_ERROR_INVALID_VALUE;
    StreamPtr stream;
    if (const CUresult error = find_stream(w, hStream, stream); error != CUDA_SUCCESS) return error;
    Task task;
    task.duration_ns = peer_span_ns(w, *source, *target, bytes);
    if (bytes <= kTruthfulBytes) {
      task.effect = [=](const Op&) { std::memcpy(bytes_at(to), bytes_at(from), bytes); };
    }
    task.activity = copy_activity(kPeerToPeer, bytes);
    return enqueue(w, *stream, std::move(task));
  });
}

FAKE_EXPORT CUresult cuMemcpyDtoH_v2(void* to, CUdeviceptr from, std::size_t bytes) {
  return entry("cuMemcpyDtoH_v2", [&](World& w, Lock& lock) -> CUresult {
    return checked_copy(w, &lock, address_of(to), false, from, true, bytes, nullptr);
  });
}

}  // namespace fairlap::fakes
