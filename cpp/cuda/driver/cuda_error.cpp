#include "cuda/driver/cuda_error.hpp"

namespace fairlap::cuda {
namespace {

std::string message(const std::string& function, int code, const std::string& name, const std::string& text,
                    const std::string& advice) {
  std::string line = function + " failed: " + (name.empty() ? "error " + std::to_string(code) : name);
  if (!text.empty()) line += " (" + text + ")";
  line += '.';
  if (!advice.empty()) line += " " + advice;
  return line;
}

bool is_driver_function(const std::string& function) { return function.rfind("cupti", 0) != 0; }

}  // namespace

CudaError::CudaError(std::string function, int code, const std::string& name, const std::string& text)
    : std::runtime_error(
          message(function, code, name, text, is_driver_function(function) ? advice_on(code) : "")),
      function_(std::move(function)),
      code_(code),
      name_(name) {}

bool breaks_the_context(CUresult code) noexcept {
  switch (code) {
    case CUDA_ERROR_ECC_UNCORRECTABLE:
    case CUDA_ERROR_CONTAINED:
    case CUDA_ERROR_ILLEGAL_ADDRESS:
    case CUDA_ERROR_LAUNCH_TIMEOUT:
    case CUDA_ERROR_ASSERT:
    case CUDA_ERROR_HARDWARE_STACK_ERROR:
    case CUDA_ERROR_ILLEGAL_INSTRUCTION:
    case CUDA_ERROR_MISALIGNED_ADDRESS:
    case CUDA_ERROR_INVALID_ADDRESS_SPACE:
    case CUDA_ERROR_INVALID_PC:
    case CUDA_ERROR_LAUNCH_FAILED:
    case CUDA_ERROR_TENSOR_MEMORY_LEAK:
    case CUDA_ERROR_MPS_CLIENT_TERMINATED:
    case CUDA_ERROR_EXTERNAL_DEVICE:
    case CUDA_ERROR_UNKNOWN:
      return true;
    default:
      return false;
  }
}

std::string advice_on(CUresult code) {
  if (breaks_the_context(code)) {
    return "The CUDA context cannot be used any more; find the fault in the timed work and start a new "
           "process.";
  }
  switch (code) {
    case CUDA_ERROR_OUT_OF_MEMORY:
      return "Free memory on the device or time a smaller problem.";
    case CUDA_ERROR_NOT_INITIALIZED:
    case CUDA_ERROR_DEINITIALIZED:
      return "Time before the process shuts down, and not in a child made by fork.";
    case CUDA_ERROR_STUB_LIBRARY:
      return "The library found is the toolkit's stub; put the driver's libcuda.so.1 first in the search "
             "path.";
    case CUDA_ERROR_NO_DEVICE:
      return "Check nvidia-smi and the variable CUDA_VISIBLE_DEVICES.";
    case CUDA_ERROR_SYSTEM_DRIVER_MISMATCH:
      return "The kernel module and libcuda.so.1 differ; restart the machine after a driver update.";
    case CUDA_ERROR_INVALID_CONTEXT:
    case CUDA_ERROR_CONTEXT_IS_DESTROYED:
    case CUDA_ERROR_INVALID_HANDLE:
      return "The stream or its context no longer exists; get the stream from the framework again.";
    case CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED:
    case CUDA_ERROR_STREAM_CAPTURE_INVALIDATED:
    case CUDA_ERROR_STREAM_CAPTURE_IMPLICIT:
      return "A stream of this context is capturing a graph; end the capture before timing.";
    default:
      return "";
  }
}

std::string capture_fault(CUresult code) {
  switch (code) {
    case CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED:
      return "it did something that cannot be captured: it synchronised, asked whether work was done, or "
             "used the "
             "default stream. Move that out of the callable, or time it without graph.";
    case CUDA_ERROR_STREAM_CAPTURE_INVALIDATED:
      return "a call inside it broke the capture: a synchronisation, an allocation outside the framework's "
             "pool, or "
             "another error. Move that out of the callable, or time it without graph.";
    case CUDA_ERROR_STREAM_CAPTURE_MERGE:
      return "it joined two captures that were begun apart. Capture on one stream only.";
    case CUDA_ERROR_STREAM_CAPTURE_UNMATCHED:
      return "it ended a capture that was begun elsewhere. Leave beginning and ending to the timer.";
    case CUDA_ERROR_STREAM_CAPTURE_UNJOINED:
      return "it put work on a second stream and did not join it again. Let the stream wait for that work at "
             "the end "
             "of the callable.";
    case CUDA_ERROR_STREAM_CAPTURE_ISOLATION:
      return "it waited for work that is not part of the capture. Finish that work before timing.";
    case CUDA_ERROR_STREAM_CAPTURE_IMPLICIT:
      return "it used the legacy default stream, which waits for the captured one. Put all its work on the "
             "stream "
             "that was handed over.";
    case CUDA_ERROR_CAPTURED_EVENT:
      return "it asked for the state of an event that is being captured. Move that out of the callable.";
    case CUDA_ERROR_STREAM_CAPTURE_WRONG_THREAD:
      return "it ended the capture from another thread. Time it without graph.";
    default:
      return "";
  }
}

}  // namespace fairlap::cuda
