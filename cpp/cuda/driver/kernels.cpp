#include "cuda/driver/kernels.hpp"

#include "cuda/driver/device_code.hpp"

namespace fairlap::cuda {

Kernels::Kernels(const BorrowedContext& context) : Owned(context), driver_(context.driver()) {
  make([this](const Driver& driver, CUmodule& module) {
    driver.cuModuleLoadData(&module, kDeviceCode);
    try {
      driver.cuModuleGetFunction(&empty_, module, kEmptyKernel);
      driver.cuModuleGetFunction(&spin_gate_, module, kSpinGateKernel);
      driver.cuModuleGetFunction(&spin_ns_, module, kSpinNsKernel);
      driver.cuModuleGetFunction(&spin_cycles_, module, kSpinCyclesKernel);
      driver.cuModuleGetFunction(&timer_steps_, module, kTimerStepsKernel);
    } catch (...) {
      static_cast<void>(driver.cuModuleUnload.code_of(module));
      throw;
    }
  });
}

Kernels::~Kernels() {
  destroy([](const Driver& driver, CUmodule module) { return driver.cuModuleUnload.code_of(module); });
}

void Kernels::launch(CUfunction function, CUstream stream, void** parameters) const {
  driver_.cuLaunchKernel(function, 1u, 1u, 1u, 1u, 1u, 1u, 0u, stream, parameters,
                         static_cast<void**>(nullptr));
}

void Kernels::launch_empty(CUstream stream) const { launch(empty_, stream, nullptr); }

void Kernels::launch_spin_gate(CUstream stream, CUdeviceptr flag, std::uint32_t ticket,
                               std::uint64_t bound_ns) const {
  void* parameters[] = {&flag, &ticket, &bound_ns};
  launch(spin_gate_, stream, parameters);
}

void Kernels::launch_spin_ns(CUstream stream, std::uint64_t ns, CUdeviceptr stamps) const {
  void* parameters[] = {&ns, &stamps};
  launch(spin_ns_, stream, parameters);
}

void Kernels::launch_spin_cycles(CUstream stream, std::uint64_t cycles, CUdeviceptr stamps) const {
  void* parameters[] = {&cycles, &stamps};
  launch(spin_cycles_, stream, parameters);
}

void Kernels::launch_timer_steps(CUstream stream, CUdeviceptr readings, std::uint32_t count) const {
  void* parameters[] = {&readings, &count};
  launch(timer_steps_, stream, parameters);
}

}  // namespace fairlap::cuda
