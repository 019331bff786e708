#pragma once

#include <cstddef>
#include <string>

#include "cuda/device/device_identity.hpp"

namespace fairlap::cuda {

// What the driver knows of a device without starting it.
struct DeviceFacts {
  std::string name;
  DeviceIdentity identity;
  int capability = 0;  // 10 * major + minor
  int multiprocessors = 0;
  std::size_t cache_bytes = 0;
  int driver_cuda_version = 0;  // 1000 * major + 10 * minor
};

// Throws BadStream where this process sees no such device.
DeviceFacts facts_of(const Driver& driver, int device);

}  // namespace fairlap::cuda
