#include <type_traits>

#include "fakes/nvml/entry.hpp"

// What a device reads at this moment.
namespace fairlap::fakes {
namespace {

nvmlReturn_t clock_of(const Board& board, const char* prefix, nvmlClockType_t type, unsigned int* out) {
  const char* const names[] = {"graphics_mhz", "sm_mhz", "mem_mhz"};
  if (type < NVML_CLOCK_GRAPHICS || type > NVML_CLOCK_MEM) return NVML_ERROR_NOT_SUPPORTED;
  return give(out, board.readings.at(prefix + std::string(names[type])));
}

}  // namespace

// Compiles only when each function has the very type that nvml_abi.hpp declares.
#define FAKE_SAME_TYPE(function) \
  static_assert(std::is_same_v<decltype(&fairlap::telemetry::function), PFN_##function>)
FAKE_SAME_TYPE(nvmlDeviceGetPowerUsage);
FAKE_SAME_TYPE(nvmlDeviceGetEnforcedPowerLimit);
FAKE_SAME_TYPE(nvmlDeviceGetTotalEnergyConsumption);
FAKE_SAME_TYPE(nvmlDeviceGetFieldValues);
FAKE_SAME_TYPE(nvmlDeviceGetClockInfo);
FAKE_SAME_TYPE(nvmlDeviceGetMaxClockInfo);
FAKE_SAME_TYPE(nvmlDeviceGetTemperature);
FAKE_SAME_TYPE(nvmlDeviceGetCurrentClocksEventReasons);
FAKE_SAME_TYPE(nvmlDeviceGetCurrentClocksThrottleReasons);
FAKE_SAME_TYPE(nvmlDeviceGetMemoryInfo);
FAKE_SAME_TYPE(nvmlDeviceGetPcieThroughput);
FAKE_SAME_TYPE(nvmlDeviceGetUtilizationRates);
#undef FAKE_SAME_TYPE

#pragma GCC visibility push(default)
extern "C" {
nvmlReturn_t nvmlDeviceGetPowerUsage(nvmlDevice_t device, unsigned int* out) {
  return on_board("nvmlDeviceGetPowerUsage", device, [&](Machine& m, const Board& board) {
    return give(out, board.average_power_mw(m.now_ns()));
  });
}

nvmlReturn_t nvmlDeviceGetEnforcedPowerLimit(nvmlDevice_t device, unsigned int* out) {
  return on_board("nvmlDeviceGetEnforcedPowerLimit", device, [&](Machine&, const Board& board) {
    return give(out, board.readings.at("power_limit_mw"));
  });
}

nvmlReturn_t nvmlDeviceGetTotalEnergyConsumption(nvmlDevice_t device, unsigned long long* out) {
  return on_board("nvmlDeviceGetTotalEnergyConsumption", device,
                  [&](Machine& m, const Board& board) -> nvmlReturn_t {
                    // Only the whole device has a counter.
                    if (board.instance_of >= 0) return NVML_ERROR_NOT_SUPPORTED;
                    return give(out, board.energy_mj(m.now_ns()));
                  });
}

nvmlReturn_t nvmlDeviceGetFieldValues(nvmlDevice_t device, int count, nvmlFieldValue_t* values) {
  return on_board("nvmlDeviceGetFieldValues", device, [&](Machine& m, const Board& board) -> nvmlReturn_t {
    if (count < 1 || values == nullptr) return NVML_ERROR_INVALID_ARGUMENT;
    const std::int64_t now_ns = m.now_ns();
    for (int i = 0; i < count; ++i) {
      nvmlFieldValue_t& value = values[i];
      value.timestamp = m.epoch_us + now_ns / 1000;
      value.latencyUsec = 0;
      value.nvmlReturn = NVML_SUCCESS;
      if (!board.read_field(value.fieldId, now_ns, value)) value.nvmlReturn = NVML_ERROR_NOT_SUPPORTED;
      if (const auto error = m.field_faults.enter(std::to_string(value.fieldId))) value.nvmlReturn = *error;
    }
    return NVML_SUCCESS;
  });
}

nvmlReturn_t nvmlDeviceGetClockInfo(nvmlDevice_t device, nvmlClockType_t type, unsigned int* out) {
  return on_board("nvmlDeviceGetClockInfo", device,
                  [&](Machine&, const Board& board) { return clock_of(board, "", type, out); });
}

nvmlReturn_t nvmlDeviceGetMaxClockInfo(nvmlDevice_t device, nvmlClockType_t type, unsigned int* out) {
  return on_board("nvmlDeviceGetMaxClockInfo", device,
                  [&](Machine&, const Board& board) { return clock_of(board, "max_", type, out); });
}

nvmlReturn_t nvmlDeviceGetTemperature(nvmlDevice_t device, nvmlTemperatureSensors_t sensor,
                                      unsigned int* out) {
  return on_board("nvmlDeviceGetTemperature", device, [&](Machine&, const Board& board) -> nvmlReturn_t {
    if (sensor != NVML_TEMPERATURE_GPU) return NVML_ERROR_INVALID_ARGUMENT;
    return give(out, board.readings.at("temperature_c"));
  });
}

nvmlReturn_t nvmlDeviceGetCurrentClocksEventReasons(nvmlDevice_t device, unsigned long long* out) {
  return on_board("nvmlDeviceGetCurrentClocksEventReasons", device, [&](Machine&, const Board& board) {
    return give(out, board.readings.at("throttle_reasons"));
  });
}

nvmlReturn_t nvmlDeviceGetCurrentClocksThrottleReasons(nvmlDevice_t device, unsigned long long* out) {
  return on_board("nvmlDeviceGetCurrentClocksThrottleReasons", device, [&](Machine&, const Board& board) {
    return give(out, board.readings.at("throttle_reasons"));
  });
}

nvmlReturn_t nvmlDeviceGetMemoryInfo(nvmlDevice_t device, nvmlMemory_t* out) {
  return on_board("nvmlDeviceGetMemoryInfo", device, [&](Machine&, const Board& board) -> nvmlReturn_t {
    if (out == nullptr) return NVML_ERROR_INVALID_ARGUMENT;
    out->total = board.readings.at("memory_total");
    out->used = board.readings.at("memory_used");
    out->free = out->total - out->used;
    return NVML_SUCCESS;
  });
}

nvmlReturn_t nvmlDeviceGetPcieThroughput(nvmlDevice_t device, nvmlPcieUtilCounter_t counter,
                                         unsigned int* out) {
  return on_board("nvmlDeviceGetPcieThroughput", device, [&](Machine&, const Board& board) -> nvmlReturn_t {
    if (counter == NVML_PCIE_UTIL_TX_BYTES) return give(out, board.readings.at("pcie_tx_kb_s"));
    if (counter == NVML_PCIE_UTIL_RX_BYTES) return give(out, board.readings.at("pcie_rx_kb_s"));
    return NVML_ERROR_INVALID_ARGUMENT;
  });
}

nvmlReturn_t nvmlDeviceGetUtilizationRates(nvmlDevice_t device, nvmlUtilization_t* out) {
  return on_board("nvmlDeviceGetUtilizationRates", device, [&](Machine&, const Board& board) -> nvmlReturn_t {
    if (out == nullptr) return NVML_ERROR_INVALID_ARGUMENT;
    out->gpu = static_cast<unsigned int>(board.readings.at("utilisation_gpu"));
    out->memory = static_cast<unsigned int>(board.readings.at("utilisation_memory"));
    return NVML_SUCCESS;
  });
}

}  // extern "C"
#pragma GCC visibility pop
}  // namespace fairlap::fakes
