#pragma once

#include <cstddef>
#include <cstdint>
#include <utility>

#include "cuda/driver/current_context.hpp"
#include "cuda/driver/relaxed_capture.hpp"
#include "cuda/stream/borrowed_stream.hpp"

namespace fairlap::cuda {

// The few things a timer makes in a borrowed context. Each is destroyed in that context, and failing to
// destroy is not an error: the context may be gone, and everything in it with it.
//
// abandon() leaks on purpose. Freeing memory waits for the device, and a device that hangs would take the
// process with it.
template <class Handle>
class Owned {
 public:
  Owned(const Owned&) = delete;
  Owned& operator=(const Owned&) = delete;
  Owned& operator=(Owned&&) = delete;

  [[nodiscard]] Handle handle() const noexcept { return handle_; }
  void abandon() noexcept { handle_ = Handle{}; }

 protected:
  explicit Owned(const BorrowedContext& context) : driver_(&context.driver()), context_(context.handle()) {}
  Owned(Owned&& other) noexcept
      : driver_(other.driver_), context_(other.context_), handle_(std::exchange(other.handle_, Handle{})) {}
  ~Owned() = default;

  template <class Make>
  void make(Make&& with_driver) {
    const RelaxedCapture relaxed(*driver_);
    const CurrentContext current(*driver_, context_);
    with_driver(*driver_, handle_);
  }

  template <class Destroy>
  void destroy(Destroy&& with_driver) noexcept {
    if (handle_ == Handle{}) return;
    const RelaxedCapture relaxed(*driver_);
    // Where the context is gone, the thing went with it.
    if (driver_->cuCtxPushCurrent.code_of(context_) != CUDA_SUCCESS) return;
    static_cast<void>(with_driver(*driver_, handle_));
    CUcontext popped = nullptr;
    static_cast<void>(driver_->cuCtxPopCurrent.code_of(&popped));
  }

 private:
  const Driver* driver_;
  CUcontext context_;
  Handle handle_{};
};

class Event : public Owned<CUevent> {
 public:
  explicit Event(const BorrowedContext& context, unsigned int flags = CU_EVENT_DEFAULT) : Owned(context) {
    make([flags](const Driver& driver, CUevent& event) { driver.cuEventCreate(&event, flags); });
  }
  Event(Event&&) noexcept = default;
  ~Event() {
    destroy([](const Driver& driver, CUevent event) { return driver.cuEventDestroy.code_of(event); });
  }
};

// A stream of our own. It does not wait for the default stream and nothing waits for
// it.
class PrivateStream : public Owned<CUstream> {
 public:
  explicit PrivateStream(const BorrowedContext& context) : Owned(context) {
    make([](const Driver& driver, CUstream& stream) {
      driver.cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING);
    });
  }
  ~PrivateStream() {
    destroy([](const Driver& driver, CUstream stream) { return driver.cuStreamDestroy.code_of(stream); });
  }
};

class DeviceMemory : public Owned<CUdeviceptr> {
 public:
  DeviceMemory(const BorrowedContext& context, std::size_t bytes) : Owned(context), bytes_(bytes) {
    make([bytes](const Driver& driver, CUdeviceptr& memory) { driver.cuMemAlloc(&memory, bytes); });
  }
  ~DeviceMemory() {
    destroy([](const Driver& driver, CUdeviceptr memory) { return driver.cuMemFree.code_of(memory); });
  }
  [[nodiscard]] std::size_t bytes() const noexcept { return bytes_; }

 private:
  std::size_t bytes_;
};

// Host memory that the device reads and writes in place.
class MappedMemory : public Owned<void*> {
 public:
  MappedMemory(const BorrowedContext& context, std::size_t bytes) : Owned(context) {
    make([bytes](const Driver& driver, void*& memory) {
      driver.cuMemHostAlloc(&memory, bytes, MEMHOSTALLOC_PORTABLE | MEMHOSTALLOC_DEVICEMAP);
    });
    try {
      make([this](const Driver& driver, void*& memory) {
        driver.cuMemHostGetDevicePointer(&on_device_, memory, 0u);
      });
    } catch (...) {
      free();
      throw;
    }
  }
  ~MappedMemory() { free(); }
  [[nodiscard]] CUdeviceptr on_device() const noexcept { return on_device_; }

 private:
  void free() noexcept {
    destroy([](const Driver& driver, void* memory) { return driver.cuMemFreeHost.code_of(memory); });
    abandon();
  }

  CUdeviceptr on_device_ = 0;
};

// Memory of ours, kept in place so that the device's copy engines read it without the processor's help. It
// must outlive this.
class RegisteredMemory : public Owned<void*> {
 public:
  RegisteredMemory(const BorrowedContext& context, void* memory, std::size_t bytes) : Owned(context) {
    make([memory, bytes](const Driver& driver, void*& registered) {
      driver.cuMemHostRegister(memory, bytes, MEMHOSTREGISTER_PORTABLE);
      registered = memory;
    });
  }
  ~RegisteredMemory() {
    destroy([](const Driver& driver, void* memory) { return driver.cuMemHostUnregister.code_of(memory); });
  }
};

}  // namespace fairlap::cuda
