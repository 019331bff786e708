#include "cuda/sampling/cache_flush.hpp"

#include <string>

namespace fairlap::cuda {
namespace {

constexpr std::size_t kFlushPerCache = 2;

std::size_t flush_bytes(const BorrowedContext& context) {
  const int cache_bytes =
      device_attribute(context.driver(), context.device(), CU_DEVICE_ATTRIBUTE_L2_CACHE_SIZE);
  if (cache_bytes <= 0) {
    throw Unavailable(
        "the driver does not report the size of this device's L2 cache, so it cannot be flushed; use "
        "cache='warm' or rotate over several sets of arguments");
  }
  return static_cast<std::size_t>(cache_bytes) * kFlushPerCache;
}

}  // namespace

bool lines_can_persist(const BorrowedContext& context) {
  const Driver& driver = context.driver();
  if (device_attribute(driver, context.device(), CU_DEVICE_ATTRIBUTE_MAX_PERSISTING_L2_CACHE_SIZE) == 0)
    return false;
  const CurrentContext current(driver, context.handle());
  std::size_t set_aside = 0;
  driver.cuCtxGetLimit(&set_aside, CU_LIMIT_PERSISTING_L2_CACHE_SIZE);
  return set_aside > 0;
}

int device_attribute(const Driver& driver, CUdevice device, CUdevice_attribute attribute) {
  int value = 0;
  driver.cuDeviceGetAttribute(&value, attribute, device);
  return value;
}

CacheFlush::CacheFlush(const BorrowedContext& context)
    : driver_(context.driver()), memory_(context, flush_bytes(context)) {}

void CacheFlush::enqueue(CUstream stream) const {
  driver_.cuMemsetD32Async(memory_.handle(), 0u, memory_.bytes() / sizeof(std::uint32_t), stream);
}

}  // namespace fairlap::cuda
