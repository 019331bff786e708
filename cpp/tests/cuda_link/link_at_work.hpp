#pragma once

#include <cstdlib>
#include <cstring>
#include <memory>
#include <vector>

#include "cuda_link/cuda_link.hpp"
#include "tests/cuda/cuda_at_work.hpp"

// A link over the faked device on which a framework is at work.
namespace fairlap::test {

// Slots in host memory, each filled with its own letter.
class HostMemory {
 public:
  HostMemory(std::size_t count, std::size_t stride)
      : memory_(page_aligned(count * stride)), slots_{memory_, stride, count} {
    for (std::size_t slot = 0; slot < count; ++slot) fill(slot, static_cast<char>('a' + slot));
  }
  ~HostMemory() { std::free(memory_); }
  HostMemory(const HostMemory&) = delete;  // The driver has its address.
  HostMemory& operator=(const HostMemory&) = delete;

  void fill(std::size_t slot, char letter) const {
    std::memset(memory_ + slot * slots_.stride, letter, slots_.stride);
  }
  [[nodiscard]] const feed::HostSlots& slots() const noexcept { return slots_; }

 private:
  static std::byte* page_aligned(std::size_t bytes) {
    void* memory = nullptr;
    CHECK_EQUAL(::posix_memalign(&memory, 4096, bytes), 0);
    return static_cast<std::byte*>(memory);
  }

  std::byte* memory_;
  feed::HostSlots slots_;
};

// All that a link may own in the driver.
inline std::int64_t left_behind() {
  return outstanding_objects() + fake_cuda_outstanding("host_registrations");
}

inline CUdeviceptr device_slot(const cuda_link::CudaLink& link, std::size_t slot) {
  return reinterpret_cast<CUdeviceptr>(link.memory(slot));
}

// Asks until nothing uses the slot any more, as the threads of a feeder do. How often it was in use is given.
inline int wait_until_unused(cuda_link::CudaLink& link, std::size_t slot) {
  int looks = 0;
  while (link.use_of(slot) != feed::SlotUse::none) ++looks;
  return looks;
}

}  // namespace fairlap::test
