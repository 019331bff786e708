#include "cuda/stream/borrowed_stream.hpp"

#include <unistd.h>

#include <cstdio>
#include <vector>

#include "cuda/driver/current_context.hpp"

namespace fairlap::cuda {
namespace {

std::string hex(std::uintptr_t address) {
  char text[24];
  std::snprintf(text, sizeof text, "0x%zx", static_cast<std::size_t>(address));
  return text;
}

CUdevice device_of(const Driver& driver, CUcontext context) {
  const CurrentContext current(driver, context);
  CUdevice device = -1;
  driver.cuCtxGetDevice(&device);
  return device;
}

bool is_in_use(const Driver& driver, CUdevice device) {
  unsigned int flags = 0;
  int active = 0;
  driver.cuDevicePrimaryCtxGetState(device, &flags, &active);
  return active != 0;
}

// The device that a process means without naming one. The first, when none is in use, for the error to name.
CUdevice only_device_in_use(const Driver& driver) {
  int count = 0;
  driver.cuDeviceGetCount(&count);
  std::vector<CUdevice> in_use;
  std::string listed;
  for (int device = 0; device < count; ++device) {
    const CUdevice handle = checked_device(driver, device);
    if (!is_in_use(driver, handle)) continue;
    in_use.push_back(handle);
    listed += (listed.empty() ? "" : " and ") + std::to_string(device);
  }
  if (in_use.size() > 1) {
    throw BadStream(
        "CUDA devices " + listed +
        " are in use here and none is current on this thread; pass device= to name the one to time");
  }
  return in_use.empty() ? checked_device(driver, 0) : in_use.front();
}

}  // namespace

CUdevice checked_device(const Driver& driver, int device) {
  int count = 0;
  driver.cuDeviceGetCount(&count);
  if (device < 0 || device >= count) {
    throw BadStream("no CUDA device " + std::to_string(device) + ": this process sees " +
                    std::to_string(count) + ". Look at CUDA_VISIBLE_DEVICES.");
  }
  CUdevice handle = -1;
  driver.cuDeviceGet(&handle, device);
  return handle;
}

bool is_default_stream(std::uintptr_t address) noexcept {
  return address == 0 || address == STREAM_LEGACY || address == STREAM_PER_THREAD;
}

bool is_readable_memory(std::uintptr_t address) noexcept {
  if (address % alignof(void*) != 0) return false;
  int ends[2];
  if (::pipe(ends) != 0) return true;  // Without a pipe we cannot know, and must not refuse a good stream.
  const bool readable = ::write(ends[1], reinterpret_cast<const void*>(address), sizeof(void*)) > 0;
  ::close(ends[0]);
  ::close(ends[1]);
  return readable;
}

BorrowedContext::BorrowedContext(BorrowedContext&& other) noexcept
    : driver_(other.driver_), context_(other.context_), device_(other.device_), retained_(other.retained_) {
  other.retained_ = false;
}

BorrowedContext::~BorrowedContext() {
  if (retained_) static_cast<void>(driver_->cuDevicePrimaryCtxRelease.code_of(device_));
}

BorrowedContext BorrowedContext::of_device(const Driver& driver, int device) {
  CUcontext current = nullptr;
  driver.cuCtxGetCurrent(&current);
  if (current != nullptr) {
    CUdevice owner = -1;
    driver.cuCtxGetDevice(&owner);
    if (device < 0 || owner == checked_device(driver, device)) return {driver, current, owner, false};
  }
  const CUdevice wanted = device < 0 ? only_device_in_use(driver) : checked_device(driver, device);
  if (!is_in_use(driver, wanted)) {
    throw BadStream("nothing has used CUDA device " + std::to_string(wanted) +
                    " yet, and fairlap does not start it. Run something on it with your framework first.");
  }
  CUcontext context = nullptr;
  driver.cuDevicePrimaryCtxRetain(&context, wanted);
  return {driver, context, wanted, true};
}

BorrowedContext BorrowedContext::start_device(const Driver& driver, int device) {
  const CUdevice wanted = checked_device(driver, device);
  CUcontext context = nullptr;
  driver.cuDevicePrimaryCtxRetain(&context, wanted);
  return {driver, context, wanted, true};
}

BorrowedContext BorrowedContext::of_stream(const Driver& driver, CUstream stream) {
  const auto address = reinterpret_cast<std::uintptr_t>(stream);
  const std::string which = "the stream " + hex(address);
  if (!is_readable_memory(address)) {
    throw BadStream(which +
                    " is not a CUDA stream of this process. Hand over the stream object itself, or the " +
                    "address its framework gives for it.");
  }
  CUcontext context = nullptr;
  const CUresult code = driver.cuStreamGetCtx.code_of(stream, &context);
  if (code == CUDA_ERROR_INVALID_HANDLE || code == CUDA_ERROR_CONTEXT_IS_DESTROYED ||
      code == CUDA_ERROR_INVALID_CONTEXT || code == CUDA_ERROR_INVALID_VALUE) {
    throw BadStream(which + " is dead or was never one: " + driver.error("cuStreamGetCtx", code).what());
  }
  if (code != CUDA_SUCCESS) driver.cuStreamGetCtx.fail(code);
  return {driver, context, device_of(driver, context), false};
}

BorrowedStream BorrowedStream::borrow(const Driver& driver, std::optional<std::uintptr_t> address,
                                      int device) {
  const auto stream = reinterpret_cast<CUstream>(address.value_or(0));
  if (!address || is_default_stream(*address)) {
    return {BorrowedContext::of_device(driver, device), stream, address.has_value()};
  }
  BorrowedContext context = BorrowedContext::of_stream(driver, stream);
  if (device >= 0 && context.device() != checked_device(driver, device)) {
    throw BadStream("the stream " + hex(*address) + " belongs to CUDA device " +
                    std::to_string(context.device()) + ", not to device " + std::to_string(device) +
                    ". Leave the device out, or hand over its stream.");
  }
  return {std::move(context), stream, true};
}

std::string BorrowedStream::name() const {
  if (!known_) return "every stream of the context";
  const auto address = reinterpret_cast<std::uintptr_t>(stream_);
  if (address == 0 || address == STREAM_LEGACY) return "the legacy default stream";
  if (address == STREAM_PER_THREAD) return "the default stream of the thread";
  return "stream " + hex(address);
}

}  // namespace fairlap::cuda
