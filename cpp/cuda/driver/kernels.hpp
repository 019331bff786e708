#pragma once

#include <cstdint>

#include "cuda/driver/owned.hpp"

namespace fairlap::cuda {

// The embedded device code, assembled by the driver for the device of a context: once for each context where
// the driver can distinguish contexts (CUDA 12.0), else for each of these, which then owns it.
class Kernels : public Owned<CUmodule> {
 public:
  explicit Kernels(const BorrowedContext& context);
  ~Kernels();

  // Each launches one thread. The context must be current when the stream is a default one.
  void launch_empty(CUstream stream) const;
  void launch_spin_gate(CUstream stream, CUdeviceptr flag, std::uint32_t ticket,
                        std::uint64_t bound_ns) const;
  void launch_spin_ns(CUstream stream, std::uint64_t ns, CUdeviceptr stamps = 0) const;
  void launch_spin_cycles(CUstream stream, std::uint64_t cycles, CUdeviceptr stamps = 0) const;
  void launch_timer_steps(CUstream stream, CUdeviceptr readings, std::uint32_t count) const;
  void launch_longest_pause(CUstream stream, std::uint64_t ns, CUdeviceptr longest) const;

 private:
  DeviceFunctions load();
  void launch(CUfunction function, CUstream stream, void** parameters) const;

  const Driver& driver_;
  DeviceFunctions functions_;
};

}  // namespace fairlap::cuda
