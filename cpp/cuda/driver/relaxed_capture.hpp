#pragma once

#include "cuda/driver/driver.hpp"

namespace fairlap::cuda {

// While this lives, its thread's calls end no capture in progress. Allocating memory or asking an event
// would end one that was begun in the global mode, in whichever thread; what we do is never part of it.
// Drivers before 10.1 have no such mode for a thread.
class RelaxedCapture {
 public:
  explicit RelaxedCapture(const Driver& driver)
      : driver_(driver), exchanged_(driver.cuThreadExchangeStreamCaptureMode.present() && exchange()) {}
  ~RelaxedCapture() {
    if (exchanged_) exchange();
  }

  RelaxedCapture(const RelaxedCapture&) = delete;  // Its life is a stretch of the thread's own stack.
  RelaxedCapture& operator=(const RelaxedCapture&) = delete;

 private:
  bool exchange() { return driver_.cuThreadExchangeStreamCaptureMode.code_of(&mode_) == CUDA_SUCCESS; }

  const Driver& driver_;
  CUstreamCaptureMode mode_ = CU_STREAM_CAPTURE_MODE_RELAXED;
  bool exchanged_;
};

}  // namespace fairlap::cuda
