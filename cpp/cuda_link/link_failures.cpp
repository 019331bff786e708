#include "cuda_link/link_failures.hpp"

namespace fairlap::cuda_link {
namespace {

std::string advice(const cuda::CudaError& error) {
  if (cuda::breaks_the_context(error.code())) {
    return "; the device's context cannot be used any more: find the fault in the work on the device, and "
           "start a new process";
  }
  switch (error.code()) {
    case cuda::CUDA_ERROR_OUT_OF_MEMORY:
      return "; ask for fewer slots or a smaller batch, or free memory";
    case cuda::CUDA_ERROR_INVALID_CONTEXT:
    case cuda::CUDA_ERROR_CONTEXT_IS_DESTROYED:
      return "; the framework's context is gone: create a new feeder";
    case cuda::CUDA_ERROR_INVALID_HANDLE:
      return "; a stream must live until the batches used on it are released";
    default:
      return "";
  }
}

}  // namespace

std::string line_of(const cuda::CudaError& error) {
  const std::string name = error.name().empty() ? "error " + std::to_string(error.code()) : error.name();
  return error.function() + " failed: " + name + advice(error);
}

}  // namespace fairlap::cuda_link
