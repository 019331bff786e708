#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <mutex>

#include "cuda/activity/cupti.hpp"
#include "cuda/stream/borrowed_stream.hpp"

namespace fairlap::cuda {

// The streams on which kernels and graphs are launched in one context while this lives: for a framework that
// does not show its stream. CUPTI calls back at every call of the driver, from whichever thread makes it.
// Throws Unavailable when another profiler holds CUPTI.
class StreamWatch {
 public:
  StreamWatch(const Cupti& cupti, const BorrowedContext& context);
  ~StreamWatch();

  StreamWatch(const StreamWatch&) = delete;  // CUPTI calls back with its address.
  StreamWatch& operator=(const StreamWatch&) = delete;

  // How many launches each stream has had, by the address by which callers name it.
  [[nodiscard]] std::map<std::uintptr_t, std::size_t> launches() const;

 private:
  static void on_call(void* watch, int domain, std::uint32_t call, const void* data);
  void keep(const CallbackDataPrefix& data);
  void stop() noexcept;

  const Cupti& cupti_;
  CUcontext context_;
  CUpti_SubscriberHandle subscriber_ = nullptr;
  mutable std::mutex mutex_;
  std::map<std::uintptr_t, std::size_t> launches_;
};

}  // namespace fairlap::cuda
