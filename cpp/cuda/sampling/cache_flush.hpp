#pragma once

#include <cstddef>

#include "cuda/driver/owned.hpp"

namespace fairlap::cuda {

// Empties the device's second-level cache of the work's data by writing twice its size. Lines that the work
// asked to persist survive that, so they are made ordinary first.
class CacheFlush {
 public:
  explicit CacheFlush(const BorrowedContext& context);

  // Enqueues the flush. The context must be current.
  void enqueue(CUstream stream) const;

  [[nodiscard]] std::size_t bytes() const noexcept { return memory_.bytes(); }
  [[nodiscard]] bool resets_persisting_lines() const noexcept { return resets_persisting_lines_; }
  void abandon() noexcept { memory_.abandon(); }

 private:
  const Driver& driver_;
  DeviceMemory memory_;
  bool resets_persisting_lines_;
};

int device_attribute(const Driver& driver, CUdevice device, CUdevice_attribute attribute);

}  // namespace fairlap::cuda
