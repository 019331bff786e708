#include "cuda/sampling/cold_cache.hpp"

namespace fairlap::cuda {

ColdCache::ColdCache(const Driver& driver, int device)
    : context_(BorrowedContext::of_device(driver, device)),
      stream_(context_),
      flush_(context_),
      cache_bytes_(static_cast<std::size_t>(
          device_attribute(driver, context_.device(), CU_DEVICE_ATTRIBUTE_L2_CACHE_SIZE))) {}

void ColdCache::make_cold() {
  const Driver& driver = context_.driver();
  // Asked each time, since a framework may set lines aside in any call.
  const bool persisting = lines_can_persist(context_);
  const CurrentContext current(driver, context_.handle());
  if (persisting) {
    driver.cuCtxResetPersistingL2Cache();
    resets_persisting_ = true;
  }
  flush_.enqueue(stream_.handle());
  driver.cuStreamSynchronize(stream_.handle());
}

}  // namespace fairlap::cuda
