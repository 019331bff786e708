#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>

#include "cuda/driver/kernels.hpp"
#include "cuda/stream/own_stream.hpp"

namespace fairlap::cuda {

// Copies to, from and within the memory of a device, on a stream of our own. Each has ended when it returns,
// whatever other streams of the process do meanwhile.
class DeviceCopies {
 public:
  DeviceCopies(const Driver& driver, int device) : stream_(driver, device) {}

  void within(CUdeviceptr to, CUdeviceptr from, std::size_t bytes);
  void upload(CUdeviceptr to, const void* from, std::size_t bytes);
  void download(void* to, CUdeviceptr from, std::size_t bytes);
  void fill(CUdeviceptr to, std::uint32_t word, std::size_t words);

  // The longest time for which a kernel of one thread did not run while it looked for `ns`. Processes take
  // turns on a device for a millisecond or more at a time, so that work of another one shows as a pause.
  [[nodiscard]] std::uint64_t longest_pause_ns(std::uint64_t ns);

  [[nodiscard]] const BorrowedContext& context() const noexcept { return stream_.context(); }

 private:
  template <class Enqueue>
  void done(Enqueue&& enqueue);

  OwnStream stream_;
  std::unique_ptr<Kernels> kernels_;  // assembled when they are needed, which a process may not be able to
  std::unique_ptr<MappedMemory> longest_;
};

}  // namespace fairlap::cuda
