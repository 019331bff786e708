#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "cuda/driver/driver.hpp"

namespace fairlap::cuda {

// A context that belongs to a framework. We never make one: a second context on a device would fight with
// the framework's for memory and time.
class BorrowedContext {
 public:
  // The context current on this thread if it is the device's, or the device's primary one if it is in use
  // already. Throws BadStream when there is neither. With -1 for the device any current context will do, and
  // else the only device that is in use: where several are, none is guessed.
  static BorrowedContext of_device(const Driver& driver, int device);

  // The device's primary context, started if need be and given back afterwards. Only for measuring floors in
  // a process that has no framework to borrow from.
  static BorrowedContext start_device(const Driver& driver, int device);

  // The context that a stream was made in.
  static BorrowedContext of_stream(const Driver& driver, CUstream stream);

  BorrowedContext(BorrowedContext&& other) noexcept;
  BorrowedContext& operator=(BorrowedContext&&) = delete;
  BorrowedContext(const BorrowedContext&) = delete;  // It may hold one count of a primary context's use.
  BorrowedContext& operator=(const BorrowedContext&) = delete;
  ~BorrowedContext();

  [[nodiscard]] const Driver& driver() const noexcept { return *driver_; }
  [[nodiscard]] CUcontext handle() const noexcept { return context_; }
  [[nodiscard]] CUdevice device() const noexcept { return device_; }

 private:
  BorrowedContext(const Driver& driver, CUcontext context, CUdevice device, bool retained)
      : driver_(&driver), context_(context), device_(device), retained_(retained) {}

  const Driver* driver_;
  CUcontext context_;
  CUdevice device_;
  bool retained_;  // We added one to the primary context's count and owe it back.
};

// Where the work that is timed runs: a framework's stream, or only its context when the framework hides its
// streams.
class BorrowedStream {
 public:
  // Refuses what is not a live stream of the device. No address means "the context only".
  static BorrowedStream borrow(const Driver& driver, std::optional<std::uintptr_t> address, int device);

  [[nodiscard]] const BorrowedContext& context() const noexcept { return context_; }
  [[nodiscard]] const Driver& driver() const noexcept { return context_.driver(); }
  [[nodiscard]] CUstream handle() const noexcept { return stream_; }
  [[nodiscard]] bool known() const noexcept { return known_; }
  [[nodiscard]] std::string name() const;

 private:
  BorrowedStream(BorrowedContext context, CUstream stream, bool known)
      : context_(std::move(context)), stream_(stream), known_(known) {}

  BorrowedContext context_;
  CUstream stream_;
  bool known_;
};

// The driver's handle of a device by its number. Throws BadStream where this process sees no such device.
CUdevice checked_device(const Driver& driver, int device);

// True for the handles 0, 1 and 2, which mean a default stream of whatever context is current.
bool is_default_stream(std::uintptr_t address) noexcept;

// True when reading there would not end the process. A stream's handle is the address of the driver's own
// record of it, so an address that is not mapped cannot be a stream; the driver itself does not check.
bool is_readable_memory(std::uintptr_t address) noexcept;

}  // namespace fairlap::cuda
