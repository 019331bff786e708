#pragma once

#include <cstddef>

#include "cuda/driver/owned.hpp"
#include "cuda/sampling/cache_flush.hpp"

namespace fairlap::cuda {

// Makes a device's second-level cache cold before calls that are timed by the host's clock. The device must
// be idle, as it is between such calls: a reset of lines that persist takes effect when it returns, in no
// stream's order.
class ColdCache {
 public:
  ColdCache(const Driver& driver, int device);

  // Returns when the cache is cold and the device idle again.
  void make_cold();

  [[nodiscard]] std::size_t flush_bytes() const noexcept { return flush_.bytes(); }
  [[nodiscard]] std::size_t cache_bytes() const noexcept { return cache_bytes_; }
  [[nodiscard]] bool resets_persisting() const noexcept { return resets_persisting_; }

 private:
  BorrowedContext context_;
  PrivateStream stream_;
  CacheFlush flush_;
  std::size_t cache_bytes_;
  bool resets_persisting_ = false;  // lines were found that can persist
};

}  // namespace fairlap::cuda
