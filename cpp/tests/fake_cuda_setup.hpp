#pragma once

#include "cuda/driver/driver_abi.hpp"
#include "fakes/cuda/exports.hpp"
#include "fakes/fake_cuda.h"

// A machine with one device on which a framework is at work: the primary context is active and current.
// Calls cost nothing, so that the times in a test are the ones it states.
namespace fairlap::test {

using namespace fairlap::cuda;  // these tests speak the driver's language

class FrameworkAtWork {
 public:
  FrameworkAtWork() {
    fake_cuda_reset();
    fake_cuda_set_cost("*", 0);
    fake_cuda_set_event_tick(1);
    cuInit(0);
    context = fake_cuda_activate_primary_context(0);
    fake_cuda_make_current(context);
    stream = fake_cuda_create_stream(context, 1);
  }

  [[nodiscard]] CUstream s() const { return reinterpret_cast<CUstream>(stream); }
  [[nodiscard]] CUcontext c() const { return reinterpret_cast<CUcontext>(context); }

  std::uint64_t context = 0;
  std::uint64_t stream = 0;  // non-blocking
};

inline CUstream as_stream(std::uint64_t handle) { return reinterpret_cast<CUstream>(handle); }

inline CUevent new_event() {
  CUevent event = nullptr;
  cuEventCreate(&event, 0);
  return event;
}

// The span between two events in whole nanoseconds; -1 when it can't be had.
inline std::int64_t span_ns(CUevent start, CUevent end) {
  float milliseconds = 0;
  if (cuEventElapsedTime(&milliseconds, start, end) != 0) return -1;
  return static_cast<std::int64_t>(static_cast<double>(milliseconds) * 1e6 + 0.5);
}

// A word of mapped host memory, zero at first, to be written as a watchdog writes it.
inline std::uint32_t* new_flag() {
  void* memory = nullptr;
  cuMemHostAlloc(&memory, 64, 3);
  return static_cast<std::uint32_t*>(memory);
}

inline CUdeviceptr device_address(const void* host) {
  CUdeviceptr address = 0;
  cuMemHostGetDevicePointer_v2(&address, const_cast<void*>(host), 0);
  return address;
}

inline void write_flag(std::uint32_t* flag, std::uint32_t value) {
  __atomic_store_n(flag, value, __ATOMIC_RELEASE);
}

}  // namespace fairlap::test
