#include "cuda/sharing/device_copies.hpp"

namespace fairlap::cuda {

template <class Enqueue>
void DeviceCopies::done(Enqueue&& enqueue) {
  const Driver& driver = context().driver();
  const CurrentContext current(driver, context().handle());
  enqueue(driver, stream_.handle());
  driver.cuStreamSynchronize(stream_.handle());
}

void DeviceCopies::within(CUdeviceptr to, CUdeviceptr from, std::size_t bytes) {
  done([&](const Driver& driver, CUstream stream) { driver.cuMemcpyDtoDAsync(to, from, bytes, stream); });
}

void DeviceCopies::upload(CUdeviceptr to, const void* from, std::size_t bytes) {
  done([&](const Driver& driver, CUstream stream) { driver.cuMemcpyHtoDAsync(to, from, bytes, stream); });
}

void DeviceCopies::download(void* to, CUdeviceptr from, std::size_t bytes) {
  done([&](const Driver& driver, CUstream stream) { driver.cuMemcpyDtoHAsync(to, from, bytes, stream); });
}

void DeviceCopies::fill(CUdeviceptr to, std::uint32_t word, std::size_t words) {
  done([&](const Driver& driver, CUstream stream) { driver.cuMemsetD32Async(to, word, words, stream); });
}

std::uint64_t DeviceCopies::longest_pause_ns(std::uint64_t ns) {
  if (!kernels_) kernels_ = std::make_unique<Kernels>(context());
  if (!longest_) longest_ = std::make_unique<MappedMemory>(context(), sizeof(std::uint64_t));
  done([&](const Driver&, CUstream stream) {
    kernels_->launch_longest_pause(stream, ns, longest_->on_device());
  });
  return *static_cast<const volatile std::uint64_t*>(longest_->handle());
}

}  // namespace fairlap::cuda
