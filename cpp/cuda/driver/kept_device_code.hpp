#pragma once

#include <map>
#include <mutex>

#include "cuda/driver/driver_abi.hpp"

namespace fairlap::cuda {

// The entry points of the embedded device code, in one context.
struct DeviceFunctions {
  CUfunction empty = nullptr;
  CUfunction spin_gate = nullptr;
  CUfunction spin_ns = nullptr;
  CUfunction spin_cycles = nullptr;
  CUfunction timer_steps = nullptr;
  CUfunction longest_pause = nullptr;
};

// The device code that was assembled for each context. It stays loaded until its context goes, and goes with
// it: assembling takes the driver tens of milliseconds, and every call of a timer would pay them again.
class KeptDeviceCode {
 public:
  // A handle may be given out again after its context was destroyed; the id of a context never is.
  template <class Load>
  DeviceFunctions of(CUcontext context, unsigned long long id, Load&& load) {
    const std::scoped_lock lock(mutex_);
    Kept& kept = kept_[context];
    if (kept.id == id) return kept.functions;
    kept.functions = load();
    kept.id = id;
    return kept.functions;
  }

 private:
  struct Kept {
    unsigned long long id = 0;  // of no context
    DeviceFunctions functions;
  };
  std::mutex mutex_;
  std::map<CUcontext, Kept> kept_;
};

}  // namespace fairlap::cuda
