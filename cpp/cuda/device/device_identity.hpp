#pragma once

#include <string>
#include <vector>

#include "cuda/driver/driver.hpp"

namespace fairlap::cuda {

// What a device is called outside CUDA. Its number here follows speed or CUDA_VISIBLE_DEVICES, NVML's follows
// the slots.
struct DeviceIdentity {
  std::string pci_bus_id;
  std::string uuid;  // of the instance where the device is one of a MIG device; empty before CUDA 11.4
};

DeviceIdentity identity_of(const Driver& driver, CUdevice device);

// All that this process sees, in CUDA's order. Starts none.
std::vector<DeviceIdentity> identify_devices(const Driver& driver);

}  // namespace fairlap::cuda
