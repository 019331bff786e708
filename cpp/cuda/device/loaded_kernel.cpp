#include "cuda/device/loaded_kernel.hpp"

#include <utility>

namespace fairlap::cuda {

LoadedKernel::LoadedKernel(const OwnStream& stream, std::string image, const std::string& name,
                           const LaunchShape& shape, const std::vector<KernelArgument>& arguments)
    : stream_(stream), driver_(stream.context().driver()), image_(std::move(image)), shape_(shape) {
  const CurrentContext current(driver_, stream_.context().handle());
  driver_.cuModuleLoadData(&module_, static_cast<const void*>(image_.c_str()));
  try {
    driver_.cuModuleGetFunction(&function_, module_, name.c_str());
    // A launch with more than 48 KiB, less what the kernel declares, must be allowed beforehand.
    if (shape.shared_bytes > 0)
      driver_.cuFuncSetAttribute(function_, CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES,
                                 static_cast<int>(shape.shared_bytes));
    place(arguments);
    driver_.cuCtxSynchronize();  // The buffers are zero from here on.
  } catch (...) {
    static_cast<void>(driver_.cuModuleUnload.code_of(module_));
    throw;
  }
}

LoadedKernel::~LoadedKernel() {
  if (driver_.cuCtxPushCurrent.code_of(stream_.context().handle()) != CUDA_SUCCESS) return;
  static_cast<void>(driver_.cuCtxSynchronize.code_of());  // A module must not go while its kernel runs.
  static_cast<void>(driver_.cuModuleUnload.code_of(module_));
  leave();
}

void LoadedKernel::place(const std::vector<KernelArgument>& arguments) {
  values_.reserve(arguments.size());  // Parameters point into the values, which must not move.
  for (const KernelArgument& argument : arguments) {
    if (const auto* const bytes = std::get_if<std::size_t>(&argument)) {
      constexpr std::size_t kWord = sizeof(std::uint32_t);
      const std::size_t words = (*bytes + kWord - 1) / kWord;
      buffers_.push_back(std::make_unique<DeviceMemory>(stream_.context(), words * kWord));
      const CUdeviceptr address = buffers_.back()->handle();
      driver_.cuMemsetD32Async(address, 0u, words, stream_.handle());
      values_.emplace_back(reinterpret_cast<const char*>(&address), sizeof address);
    } else {
      values_.push_back(std::get<std::string>(argument));
    }
    parameters_.push_back(values_.back().data());
  }
}

void LoadedKernel::launch() {
  driver_.cuLaunchKernel(function_, shape_.grid[0], shape_.grid[1], shape_.grid[2], shape_.block[0],
                         shape_.block[1], shape_.block[2], shape_.shared_bytes, stream_.handle(),
                         parameters_.data(), static_cast<void**>(nullptr));
}

}  // namespace fairlap::cuda
