#pragma once

#include <memory>
#include <string>

#include "telemetry/nvml/nvml_abi.hpp"

namespace fairlap::telemetry {

// NVML's functions, looked up in the library of the driver that is installed. One that an older driver lacks
// is null.
struct NvmlFunctions {
// NOLINTBEGIN(bugprone-macro-parentheses): the arguments are names.
#define FAIRLAP_NVML_FUNCTIONS(each)               \
  each(nvmlInit_v2);                               \
  each(nvmlShutdown);                              \
  each(nvmlErrorString);                           \
  each(nvmlSystemGetCudaDriverVersion_v2);         \
  each(nvmlDeviceGetCount_v2);                     \
  each(nvmlDeviceGetHandleByIndex_v2);             \
  each(nvmlDeviceGetUUID);                         \
  each(nvmlDeviceGetPowerUsage);                   \
  each(nvmlDeviceGetTotalEnergyConsumption);       \
  each(nvmlDeviceGetFieldValues);                  \
  each(nvmlDeviceGetClockInfo);                    \
  each(nvmlDeviceGetTemperature);                  \
  each(nvmlDeviceGetCurrentClocksEventReasons);    \
  each(nvmlDeviceGetCurrentClocksThrottleReasons); \
  each(nvmlDeviceGetMemoryInfo);                   \
  each(nvmlDeviceGetUtilizationRates)
#define FAIRLAP_NVML_MEMBER(function) PFN_##function function = nullptr
  FAIRLAP_NVML_FUNCTIONS(FAIRLAP_NVML_MEMBER);
#undef FAIRLAP_NVML_MEMBER
  // NOLINTEND(bugprone-macro-parentheses)
};

// NVML, initialised. NVML counts how often, so several may live at once.
class NvmlSession {
 public:
  // Null with the reason when there is no NVML here or it does not start. `path` stands for the library of
  // the system when it is empty; FAIRLAP_LIBNVML in the environment names another one.
  static std::shared_ptr<NvmlSession> open(const std::string& path, std::string& absent_because);
  ~NvmlSession();

  NvmlSession(const NvmlSession&) = delete;  // It ends what it started, once.
  NvmlSession& operator=(const NvmlSession&) = delete;

  [[nodiscard]] const NvmlFunctions& call() const noexcept { return functions_; }
  [[nodiscard]] std::string text_of(nvmlReturn_t code) const;

 private:
  explicit NvmlSession(const NvmlFunctions& functions);

  NvmlFunctions functions_;
  int owner_process_;
};

}  // namespace fairlap::telemetry
