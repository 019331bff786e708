#include "cuda/device/device_facts.hpp"

#include <array>

#include "cuda/sampling/cache_flush.hpp"

namespace fairlap::cuda {

DeviceFacts facts_of(const Driver& driver, int device) {
  const CUdevice handle = checked_device(driver, device);
  std::array<char, 256> name{};
  driver.cuDeviceGetName(name.data(), static_cast<int>(name.size()), handle);
  const auto attribute = [&](CUdevice_attribute which) { return device_attribute(driver, handle, which); };
  return {.name = name.data(),
          .identity = identity_of(driver, handle),
          .capability = 10 * attribute(CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR) +
                        attribute(CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR),
          .multiprocessors = attribute(CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT),
          .cache_bytes = static_cast<std::size_t>(attribute(CU_DEVICE_ATTRIBUTE_L2_CACHE_SIZE)),
          .driver_cuda_version = driver.version()};
}

}  // namespace fairlap::cuda
