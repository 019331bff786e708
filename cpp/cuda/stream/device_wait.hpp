#pragma once

#include <utility>

#include "cuda/driver/current_context.hpp"
#include "cuda/stream/borrowed_stream.hpp"

namespace fairlap::cuda {

// Waits until a device has done all that was enqueued in its context, on whatever streams. Every contestant
// of a race is completed by it, so that the end of a timed call means the same for all.
class DeviceWait {
 public:
  DeviceWait(const Driver& driver, int device) : context_(BorrowedContext::of_device(driver, device)) {}

  void wait() const {
    const CurrentContext current(context_.driver(), context_.handle());
    context_.driver().cuCtxSynchronize();
  }
  [[nodiscard]] int device() const noexcept { return context_.device(); }

 private:
  BorrowedContext context_;
};

}  // namespace fairlap::cuda
