#include "cuda/device/device_identity.hpp"

#include <array>
#include <cstdio>

namespace fairlap::cuda {
namespace {

std::string text_of(const CUuuid& uuid) {
  std::string text;
  for (std::size_t byte = 0; byte < sizeof uuid.bytes; ++byte) {
    char digits[3];
    std::snprintf(digits, sizeof digits, "%02x", static_cast<unsigned char>(uuid.bytes[byte]));
    if (byte == 4 || byte == 6 || byte == 8 || byte == 10) text += '-';
    text += digits;
  }
  return text;
}

}  // namespace

DeviceIdentity identity_of(const Driver& driver, CUdevice device) {
  std::array<char, 64> text{};
  driver.cuDeviceGetPCIBusId(text.data(), static_cast<int>(text.size()), device);
  DeviceIdentity identity{.pci_bus_id = text.data(), .uuid = {}};
  CUuuid uuid{};
  if (driver.cuDeviceGetUuid.present() && driver.cuDeviceGetUuid.code_of(&uuid, device) == CUDA_SUCCESS) {
    identity.uuid = text_of(uuid);
  }
  return identity;
}

std::vector<DeviceIdentity> identify_devices(const Driver& driver) {
  int count = 0;
  driver.cuDeviceGetCount(&count);
  std::vector<DeviceIdentity> identities;
  for (int index = 0; index < count; ++index) {
    CUdevice device = -1;
    driver.cuDeviceGet(&device, index);
    identities.push_back(identity_of(driver, device));
  }
  return identities;
}

}  // namespace fairlap::cuda
