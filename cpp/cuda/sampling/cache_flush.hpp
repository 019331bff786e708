#pragma once

#include <cstddef>

#include "cuda/driver/owned.hpp"

namespace fairlap::cuda {

// Empties the device's second-level cache of the work's data by writing twice its size. Lines that the work
// asked to persist survive that; they must have been made ordinary before.
class CacheFlush {
 public:
  explicit CacheFlush(const BorrowedContext& context);

  // Enqueues the flush. The context must be current.
  void enqueue(CUstream stream) const;

  [[nodiscard]] std::size_t bytes() const noexcept { return memory_.bytes(); }
  void abandon() noexcept { memory_.abandon(); }

 private:
  const Driver& driver_;
  DeviceMemory memory_;
};

// Whether a part of the cache is set aside for lines that persist. Making them ordinary costs a call into the
// driver and an idle stream for every sample, so it is done only where there can be any.
bool lines_can_persist(const BorrowedContext& context);

int device_attribute(const Driver& driver, CUdevice device, CUdevice_attribute attribute);

}  // namespace fairlap::cuda
