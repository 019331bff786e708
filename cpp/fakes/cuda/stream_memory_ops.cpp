#include "fakes/cuda/enqueue.hpp"
#include "fakes/cuda/lookup.hpp"
#include "fakes/cuda/memory.hpp"

// Streams that wait for, or write, a word of memory.
namespace fairlap::fakes {
namespace {

constexpr unsigned int kConditionMask = 3;
constexpr unsigned int kFlush = 1U << 30;

bool holds(unsigned int condition, std::uint32_t seen, std::uint32_t value) {
  switch (condition) {
    case 0:
      return static_cast<std::int32_t>(seen - value) >= 0;
    case 1:
      return seen == value;
    case 2:
      return (seen & value) != 0;
    default:
      return ~(seen | value) != 0;
  }
}

// The address must be an aligned word of memory that the device can see.
CUresult check_word(World& w, CUdeviceptr address) {
  const bool valid =
      address % sizeof(std::uint32_t) == 0 && memory_used(w, address, sizeof(std::uint32_t)) != nullptr;
  return valid ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

CUresult wait_value(World& w, CUstream hStream, CUdeviceptr address, std::uint32_t value,
                    unsigned int flags) {
  StreamPtr stream;
  if (const CUresult error = find_stream(w, hStream, stream); error != CUDA_SUCCESS) return error;
  if (w.stream_waits == StreamWaits::refused) return CUDA_ERROR_NOT_SUPPORTED;
  if ((flags & ~(kConditionMask | kFlush)) != 0) return CUDA_ERROR_INVALID_VALUE;
  if (const CUresult error = check_word(w, address); error != CUDA_SUCCESS) return error;
  Task task;
  if (w.stream_waits == StreamWaits::ignored) return enqueue(w, *stream, task);
  auto gate = std::make_shared<Gate>();
  gate->word = reinterpret_cast<const std::uint32_t*>(address);
  gate->open = [condition = flags & kConditionMask, value](std::uint32_t seen) {
    return holds(condition, seen, value);
  };
  task.gate = gate;
  return enqueue(w, *stream, std::move(task));
}

CUresult write_value(World& w, CUstream hStream, CUdeviceptr address, std::uint32_t value,
                     unsigned int flags) {
  constexpr unsigned int kNoMemoryBarrier = 1;
  StreamPtr stream;
  if (const CUresult error = find_stream(w, hStream, stream); error != CUDA_SUCCESS) return error;
  if (w.stream_waits == StreamWaits::refused) return CUDA_ERROR_NOT_SUPPORTED;
  if ((flags & ~kNoMemoryBarrier) != 0) return CUDA_ERROR_INVALID_VALUE;
  if (const CUresult error = check_word(w, address); error != CUDA_SUCCESS) return error;
  auto* word = reinterpret_cast<std::uint32_t*>(address);
  Task task;
  task.effect = [word, value](const Op&) { __atomic_store_n(word, value, __ATOMIC_RELEASE); };
  return enqueue(w, *stream, std::move(task));
}

}  // namespace

FAKE_EXPORT CUresult cuStreamWaitValue32_v2(CUstream stream, CUdeviceptr address, std::uint32_t value,
                                            unsigned int flags) {
  return entry("cuStreamWaitValue32_v2",
               [&](World& w, Lock&) -> CUresult { return wait_value(w, stream, address, value, flags); });
}

FAKE_EXPORT CUresult cuStreamWriteValue32_v2(CUstream stream, CUdeviceptr address, std::uint32_t value,
                                             unsigned int flags) {
  return entry("cuStreamWriteValue32_v2",
               [&](World& w, Lock&) -> CUresult { return write_value(w, stream, address, value, flags); });
}

}  // namespace fairlap::fakes
