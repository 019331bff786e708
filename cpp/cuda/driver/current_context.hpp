#pragma once

#include "cuda/driver/driver.hpp"

namespace fairlap::cuda {

// Makes a context current on the calling thread for as long as this lives. It is never alive while the
// timed work runs: the work sees the context that its caller had chosen.
class CurrentContext {
 public:
  CurrentContext(const Driver& driver, CUcontext context) : driver_(driver) {
    driver.cuCtxPushCurrent(context);
  }
  ~CurrentContext() {
    CUcontext popped = nullptr;
    static_cast<void>(driver_.cuCtxPopCurrent.code_of(&popped));  // Nothing can be done about it here.
  }

  CurrentContext(const CurrentContext&) = delete;  // Its life is a stretch of the thread's own stack.
  CurrentContext& operator=(const CurrentContext&) = delete;

 private:
  const Driver& driver_;
};

}  // namespace fairlap::cuda
