#include "telemetry/nvml/nvml_fields.hpp"

#include <array>

namespace fairlap::telemetry {
namespace {

constexpr double kPerThousand = 1e-3;  // milliwatts and millijoules
constexpr int kCuda13 = 13000;

constexpr std::array kFieldValues{
    NvmlFieldValue{NVML_FI_DEV_POWER_INSTANT, "power_instant_w", kPerThousand, FieldKind::gauge, Lane::fast,
                   0},
    NvmlFieldValue{NVML_FI_DEV_POWER_AVERAGE, "power_average_w", kPerThousand, FieldKind::gauge, Lane::slow,
                   0},
    NvmlFieldValue{NVML_FI_DEV_TOTAL_ENERGY_CONSUMPTION, "energy_j", kPerThousand, FieldKind::counter,
                   Lane::slow, 0},
    NvmlFieldValue{NVML_FI_DEV_MEMORY_TEMP, "memory_temperature_c", 1.0, FieldKind::gauge, Lane::rare, 0},
    NvmlFieldValue{NVML_FI_DEV_PERF_POLICY_POWER, "throttled_by_power_ns", 1.0, FieldKind::counter,
                   Lane::slow, 0},
    NvmlFieldValue{NVML_FI_DEV_PERF_POLICY_THERMAL, "throttled_by_heat_ns", 1.0, FieldKind::counter,
                   Lane::slow, 0},
    NvmlFieldValue{NVML_FI_DEV_PERF_POLICY_SYNC_BOOST, "throttled_by_sync_boost_ns", 1.0, FieldKind::counter,
                   Lane::slow, 0},
    NvmlFieldValue{NVML_FI_DEV_CLOCKS_EVENT_REASON_SW_THERM_SLOWDOWN, "slowed_by_heat_in_software_ns", 1.0,
                   FieldKind::counter, Lane::slow, kCuda13},
    NvmlFieldValue{NVML_FI_DEV_CLOCKS_EVENT_REASON_HW_THERM_SLOWDOWN, "slowed_by_heat_in_hardware_ns", 1.0,
                   FieldKind::counter, Lane::slow, kCuda13},
    NvmlFieldValue{NVML_FI_DEV_CLOCKS_EVENT_REASON_HW_POWER_BRAKE_SLOWDOWN, "slowed_by_power_brake_ns", 1.0,
                   FieldKind::counter, Lane::slow, kCuda13},
    NvmlFieldValue{NVML_FI_DEV_PCIE_COUNT_TX_BYTES, "pcie_sent_bytes", 1.0, FieldKind::counter, Lane::slow,
                   0},
    NvmlFieldValue{NVML_FI_DEV_PCIE_COUNT_RX_BYTES, "pcie_received_bytes", 1.0, FieldKind::counter,
                   Lane::slow, 0},
};

template <class Number, class Function, class... Between>
nvmlReturn_t one_number(Function function, double scale, double* out, nvmlDevice_t device,
                        Between... between) noexcept {
  if (function == nullptr) return NVML_ERROR_FUNCTION_NOT_FOUND;
  Number number{};
  const nvmlReturn_t code = function(device, between..., &number);
  *out = static_cast<double>(number) * scale;
  return code;
}

// Captureless, so that the table is made at compile time.
using Whole = unsigned int;
constexpr std::array kGetters{
    NvmlGetter{{"power_average_w", nullptr},
               FieldKind::gauge,
               Lane::slow,
               [](const NvmlFunctions& nvml, nvmlDevice_t device, double* out) {
                 return one_number<Whole>(nvml.nvmlDeviceGetPowerUsage, kPerThousand, out, device);
               }},
    NvmlGetter{{"energy_j", nullptr},
               FieldKind::counter,
               Lane::slow,
               [](const NvmlFunctions& nvml, nvmlDevice_t device, double* out) {
                 return one_number<unsigned long long>(nvml.nvmlDeviceGetTotalEnergyConsumption, kPerThousand,
                                                       out, device);
               }},
    NvmlGetter{{"sm_clock_mhz", nullptr},
               FieldKind::gauge,
               Lane::slow,
               [](const NvmlFunctions& nvml, nvmlDevice_t device, double* out) {
                 return one_number<Whole>(nvml.nvmlDeviceGetClockInfo, 1.0, out, device, NVML_CLOCK_SM);
               }},
    NvmlGetter{{"memory_clock_mhz", nullptr},
               FieldKind::gauge,
               Lane::rare,
               [](const NvmlFunctions& nvml, nvmlDevice_t device, double* out) {
                 return one_number<Whole>(nvml.nvmlDeviceGetClockInfo, 1.0, out, device, NVML_CLOCK_MEM);
               }},
    NvmlGetter{{"temperature_c", nullptr},
               FieldKind::gauge,
               Lane::rare,
               [](const NvmlFunctions& nvml, nvmlDevice_t device, double* out) {
                 return one_number<Whole>(nvml.nvmlDeviceGetTemperature, 1.0, out, device,
                                          NVML_TEMPERATURE_GPU);
               }},
    NvmlGetter{{"throttle_reasons_bits", nullptr},
               FieldKind::gauge,
               Lane::slow,
               [](const NvmlFunctions& nvml, nvmlDevice_t device, double* out) {
                 // Renamed in 2023; older drivers know the old name only.
                 const auto function = nvml.nvmlDeviceGetCurrentClocksEventReasons != nullptr
                                           ? nvml.nvmlDeviceGetCurrentClocksEventReasons
                                           : nvml.nvmlDeviceGetCurrentClocksThrottleReasons;
                 return one_number<unsigned long long>(function, 1.0, out, device);
               }},
    NvmlGetter{{"memory_used_bytes", "memory_total_bytes"},
               FieldKind::gauge,
               Lane::slow,
               [](const NvmlFunctions& nvml, nvmlDevice_t device, double* out) {
                 if (nvml.nvmlDeviceGetMemoryInfo == nullptr) return NVML_ERROR_FUNCTION_NOT_FOUND;
                 nvmlMemory_t memory{};
                 const nvmlReturn_t code = nvml.nvmlDeviceGetMemoryInfo(device, &memory);
                 out[0] = static_cast<double>(memory.used);
                 out[1] = static_cast<double>(memory.total);
                 return code;
               }},
    NvmlGetter{{"utilisation_percent", "memory_utilisation_percent"},
               FieldKind::gauge,
               Lane::rare,
               [](const NvmlFunctions& nvml, nvmlDevice_t device, double* out) {
                 if (nvml.nvmlDeviceGetUtilizationRates == nullptr) return NVML_ERROR_FUNCTION_NOT_FOUND;
                 nvmlUtilization_t utilisation{};
                 const nvmlReturn_t code = nvml.nvmlDeviceGetUtilizationRates(device, &utilisation);
                 out[0] = utilisation.gpu;
                 out[1] = utilisation.memory;
                 return code;
               }},
};

}  // namespace

std::span<const NvmlFieldValue> nvml_field_values() { return kFieldValues; }
std::span<const NvmlGetter> nvml_getters() { return kGetters; }

double value_of(const nvmlFieldValue_t& field) noexcept {
  switch (field.valueType) {
    case NVML_VALUE_TYPE_DOUBLE:
      return field.value.dVal;
    case NVML_VALUE_TYPE_UNSIGNED_INT:
      return field.value.uiVal;
    case NVML_VALUE_TYPE_SIGNED_LONG_LONG:
      return static_cast<double>(field.value.sllVal);
    case NVML_VALUE_TYPE_UNSIGNED_LONG:
      return static_cast<double>(field.value.ulVal);
    default:
      return static_cast<double>(field.value.ullVal);
  }
}

}  // namespace fairlap::telemetry
