#include "cuda/driver/kernels.hpp"

#include "cuda/driver/device_code.hpp"

namespace fairlap::cuda {
namespace {

constexpr unsigned long long kNoId = 0;

unsigned long long id_of(const BorrowedContext& context) {
  const auto& get_id = context.driver().cuCtxGetId;
  unsigned long long id = kNoId;
  const bool is_known = get_id.present() && get_id.code_of(context.handle(), &id) == CUDA_SUCCESS;
  return is_known ? id : kNoId;
}

}  // namespace

Kernels::Kernels(const BorrowedContext& context) : Owned(context), driver_(context.driver()) {
  const unsigned long long id = id_of(context);
  if (id == kNoId) {
    functions_ = load();
    return;
  }
  functions_ = driver_.kept_device_code().of(context.handle(), id, [this] { return load(); });
  abandon();  // It belongs to the context.
}

DeviceFunctions Kernels::load() {
  DeviceFunctions found;
  make([&found](const Driver& driver, CUmodule& module) {
    driver.cuModuleLoadData(&module, kDeviceCode);
    try {
      driver.cuModuleGetFunction(&found.empty, module, kEmptyKernel);
      driver.cuModuleGetFunction(&found.spin_gate, module, kSpinGateKernel);
      driver.cuModuleGetFunction(&found.spin_ns, module, kSpinNsKernel);
      driver.cuModuleGetFunction(&found.spin_cycles, module, kSpinCyclesKernel);
      driver.cuModuleGetFunction(&found.timer_steps, module, kTimerStepsKernel);
      driver.cuModuleGetFunction(&found.longest_pause, module, kLongestPauseKernel);
    } catch (...) {
      static_cast<void>(driver.cuModuleUnload.code_of(module));
      module = nullptr;
      throw;
    }
  });
  return found;
}

Kernels::~Kernels() {
  destroy([](const Driver& driver, CUmodule module) { return driver.cuModuleUnload.code_of(module); });
}

void Kernels::launch(CUfunction function, CUstream stream, void** parameters) const {
  driver_.cuLaunchKernel(function, 1u, 1u, 1u, 1u, 1u, 1u, 0u, stream, parameters,
                         static_cast<void**>(nullptr));
}

void Kernels::launch_empty(CUstream stream) const { launch(functions_.empty, stream, nullptr); }

void Kernels::launch_spin_gate(CUstream stream, CUdeviceptr flag, std::uint32_t ticket,
                               std::uint64_t bound_ns) const {
  void* parameters[] = {&flag, &ticket, &bound_ns};
  launch(functions_.spin_gate, stream, parameters);
}

void Kernels::launch_spin_ns(CUstream stream, std::uint64_t ns, CUdeviceptr stamps) const {
  void* parameters[] = {&ns, &stamps};
  launch(functions_.spin_ns, stream, parameters);
}

void Kernels::launch_spin_cycles(CUstream stream, std::uint64_t cycles, CUdeviceptr stamps) const {
  void* parameters[] = {&cycles, &stamps};
  launch(functions_.spin_cycles, stream, parameters);
}

void Kernels::launch_timer_steps(CUstream stream, CUdeviceptr readings, std::uint32_t count) const {
  void* parameters[] = {&readings, &count};
  launch(functions_.timer_steps, stream, parameters);
}

void Kernels::launch_longest_pause(CUstream stream, std::uint64_t ns, CUdeviceptr longest) const {
  void* parameters[] = {&ns, &longest};
  launch(functions_.longest_pause, stream, parameters);
}

}  // namespace fairlap::cuda
