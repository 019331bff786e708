#pragma once

#include <cstdint>

#include "cuda/driver/owned.hpp"

namespace fairlap::cuda {

// The embedded device code, assembled by the driver for the device of a context.
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

 private:
  void launch(CUfunction function, CUstream stream, void** parameters) const;

  const Driver& driver_;
  CUfunction empty_ = nullptr;
  CUfunction spin_gate_ = nullptr;
  CUfunction spin_ns_ = nullptr;
  CUfunction spin_cycles_ = nullptr;
  CUfunction timer_steps_ = nullptr;
};

}  // namespace fairlap::cuda
