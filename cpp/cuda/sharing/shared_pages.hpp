#pragma once

#include <cstddef>

#include "cuda/driver/owned.hpp"

// Memory of a device that two processes use, by the driver's older interface for that, which knows memory of
// cuMemAlloc only. A handle lets its holder read and write; the driver has no read-only one.
namespace fairlap::cuda {

// Throws Unavailable where two processes cannot use the device at once, or share no memory on it.
void require_sharing(const BorrowedContext& context);

// Memory that fills blocks of the driver, which are of 2 MiB. Smaller allocations of a process are put into
// one block, and a process that opens one of them gets all of the block. It must outlive its use by others.
class DevicePages {
 public:
  DevicePages(const BorrowedContext& context, std::size_t bytes);

  [[nodiscard]] CUdeviceptr address() const noexcept { return memory_.handle(); }
  [[nodiscard]] std::size_t bytes() const noexcept { return memory_.bytes(); }

  // For other processes, each of which may open it once it has this.
  [[nodiscard]] CUipcMemHandle exported() const;

 private:
  const Driver& driver_;
  CUcontext context_;
  DeviceMemory memory_;
};

// Memory that another process exported.
class OpenedPages : public Owned<CUdeviceptr> {
 public:
  OpenedPages(const BorrowedContext& context, const CUipcMemHandle& exported);
  ~OpenedPages();
};

}  // namespace fairlap::cuda
