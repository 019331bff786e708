#pragma once

#include <cstdint>

#include "cuda/driver/owned.hpp"

namespace fairlap::cuda {

// A stream for a framework that works on whatever stream it is given. It is made in the device's primary
// context, which such frameworks use, and starts the device where nothing has used it yet.
class OwnStream {
 public:
  OwnStream(const Driver& driver, int device)
      : context_(BorrowedContext::start_device(driver, device)), stream_(context_) {}

  [[nodiscard]] const BorrowedContext& context() const noexcept { return context_; }
  [[nodiscard]] CUstream handle() const noexcept { return stream_.handle(); }
  [[nodiscard]] std::uintptr_t address() const noexcept {
    return reinterpret_cast<std::uintptr_t>(stream_.handle());
  }

 private:
  BorrowedContext context_;
  PrivateStream stream_;
};

}  // namespace fairlap::cuda
