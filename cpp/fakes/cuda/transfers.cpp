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

constexpr std::int64_t kLatencyNs = 1000;
constexpr std::uint64_t kLinkBytesPerUs = 25'000;       // between host and device
constexpr std::uint64_t kDeviceBytesPerUs = 2'000'000;  // within the device

// CUPTI's numbers for the kinds of copies.
constexpr int kHostToDevice = 1;
constexpr int kDeviceToHost = 2;
constexpr int kDeviceToDevice = 8;
constexpr int kHostToHost = 9;

std::int64_t span_ns(std::uint64_t bytes, std::uint64_t bytes_per_us) {
  return kLatencyNs + static_cast<std::int64_t>(bytes * 1000 / bytes_per_us);
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
  task.duration_ns = span_ns(bytes, kDeviceBytesPerUs);
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
  task.duration_ns = span_ns(bytes, to_device && from_device ? kDeviceBytesPerUs : kLinkBytesPerUs);
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

CUdeviceptr address_of(const void* memory) { return reinterpret_cast<CUdeviceptr>(memory); }

}  // namespace

fake_cuda_activity copy_activity(int copy_kind, std::uint64_t bytes) {
  fake_cuda_activity activity{};
  constexpr int kPeerToPeer = 10;
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

FAKE_EXPORT CUresult cuMemcpyDtoH_v2(void* to, CUdeviceptr from, std::size_t bytes) {
  return entry("cuMemcpyDtoH_v2", [&](World& w, Lock& lock) -> CUresult {
    return checked_copy(w, &lock, address_of(to), false, from, true, bytes, nullptr);
  });
}

}  // namespace fairlap::fakes
