#pragma once

// The part of NVML's binary interface that fairlap uses, declared by ourselves so that no NVIDIA header
// is needed to build. Names are NVIDIA's. A conformance test compares every line with NVIDIA's headers.

namespace fairlap::telemetry {

using nvmlReturn_t = int;
using nvmlDevice_t = struct nvmlDevice_st*;
using nvmlValueType_t = int;
using nvmlClockType_t = int;
using nvmlTemperatureSensors_t = int;
using nvmlPcieUtilCounter_t = int;

constexpr nvmlReturn_t NVML_SUCCESS = 0;
constexpr nvmlReturn_t NVML_ERROR_UNINITIALIZED = 1;
constexpr nvmlReturn_t NVML_ERROR_INVALID_ARGUMENT = 2;
constexpr nvmlReturn_t NVML_ERROR_NOT_SUPPORTED = 3;
constexpr nvmlReturn_t NVML_ERROR_NO_PERMISSION = 4;
constexpr nvmlReturn_t NVML_ERROR_NOT_FOUND = 6;
constexpr nvmlReturn_t NVML_ERROR_INSUFFICIENT_SIZE = 7;
constexpr nvmlReturn_t NVML_ERROR_DRIVER_NOT_LOADED = 9;
constexpr nvmlReturn_t NVML_ERROR_TIMEOUT = 10;
constexpr nvmlReturn_t NVML_ERROR_LIBRARY_NOT_FOUND = 12;
constexpr nvmlReturn_t NVML_ERROR_FUNCTION_NOT_FOUND = 13;
constexpr nvmlReturn_t NVML_ERROR_GPU_IS_LOST = 15;
constexpr nvmlReturn_t NVML_ERROR_RESET_REQUIRED = 16;
constexpr nvmlReturn_t NVML_ERROR_OPERATING_SYSTEM = 17;
constexpr nvmlReturn_t NVML_ERROR_LIB_RM_VERSION_MISMATCH = 18;
constexpr nvmlReturn_t NVML_ERROR_IN_USE = 19;
constexpr nvmlReturn_t NVML_ERROR_MEMORY = 20;
constexpr nvmlReturn_t NVML_ERROR_NO_DATA = 21;
constexpr nvmlReturn_t NVML_ERROR_ARGUMENT_VERSION_MISMATCH = 25;
constexpr nvmlReturn_t NVML_ERROR_UNKNOWN = 999;

// Sizes of the texts a caller has to make room for.
constexpr unsigned int NVML_SYSTEM_DRIVER_VERSION_BUFFER_SIZE = 80;
constexpr unsigned int NVML_DEVICE_NAME_V2_BUFFER_SIZE = 96;
constexpr unsigned int NVML_DEVICE_UUID_V2_BUFFER_SIZE = 96;

constexpr nvmlClockType_t NVML_CLOCK_GRAPHICS = 0;
constexpr nvmlClockType_t NVML_CLOCK_SM = 1;
constexpr nvmlClockType_t NVML_CLOCK_MEM = 2;

constexpr nvmlTemperatureSensors_t NVML_TEMPERATURE_GPU = 0;

constexpr nvmlPcieUtilCounter_t NVML_PCIE_UTIL_TX_BYTES = 0;
constexpr nvmlPcieUtilCounter_t NVML_PCIE_UTIL_RX_BYTES = 1;

constexpr nvmlValueType_t NVML_VALUE_TYPE_DOUBLE = 0;
constexpr nvmlValueType_t NVML_VALUE_TYPE_UNSIGNED_INT = 1;
constexpr nvmlValueType_t NVML_VALUE_TYPE_UNSIGNED_LONG = 2;
constexpr nvmlValueType_t NVML_VALUE_TYPE_UNSIGNED_LONG_LONG = 3;
constexpr nvmlValueType_t NVML_VALUE_TYPE_SIGNED_LONG_LONG = 4;

// Fields. Times spent throttled are in nanoseconds, energy in millijoules, power in milliwatts.
constexpr unsigned int NVML_FI_DEV_PERF_POLICY_POWER = 74;
constexpr unsigned int NVML_FI_DEV_PERF_POLICY_THERMAL = 75;
constexpr unsigned int NVML_FI_DEV_PERF_POLICY_SYNC_BOOST = 76;
constexpr unsigned int NVML_FI_DEV_MEMORY_TEMP = 82;
constexpr unsigned int NVML_FI_DEV_TOTAL_ENERGY_CONSUMPTION = 83;
constexpr unsigned int NVML_FI_DEV_POWER_AVERAGE = 185;
constexpr unsigned int NVML_FI_DEV_POWER_INSTANT = 186;
constexpr unsigned int NVML_FI_DEV_ENERGY = 191;
constexpr unsigned int NVML_FI_DEV_PCIE_COUNT_TX_BYTES = 197;
constexpr unsigned int NVML_FI_DEV_PCIE_COUNT_RX_BYTES = 198;
// These three moved: the libraries of CUDA 12.9 had them as 251, 252 and 253, which mean something else now.
// abi-since: 13000
constexpr unsigned int NVML_FI_DEV_CLOCKS_EVENT_REASON_SW_THERM_SLOWDOWN = 269;
// abi-since: 13000
constexpr unsigned int NVML_FI_DEV_CLOCKS_EVENT_REASON_HW_THERM_SLOWDOWN = 270;
// abi-since: 13000
constexpr unsigned int NVML_FI_DEV_CLOCKS_EVENT_REASON_HW_POWER_BRAKE_SLOWDOWN = 271;

// Why clocks are not at their highest, as bits.
constexpr unsigned long long nvmlClocksThrottleReasonGpuIdle = 0x1;
constexpr unsigned long long nvmlClocksThrottleReasonApplicationsClocksSetting = 0x2;
constexpr unsigned long long nvmlClocksThrottleReasonSwPowerCap = 0x4;
constexpr unsigned long long nvmlClocksThrottleReasonHwSlowdown = 0x8;
constexpr unsigned long long nvmlClocksThrottleReasonSyncBoost = 0x10;
constexpr unsigned long long nvmlClocksThrottleReasonSwThermalSlowdown = 0x20;
constexpr unsigned long long nvmlClocksThrottleReasonHwThermalSlowdown = 0x40;
constexpr unsigned long long nvmlClocksThrottleReasonHwPowerBrakeSlowdown = 0x80;
constexpr unsigned long long nvmlClocksThrottleReasonDisplayClockSetting = 0x100;

struct nvmlPciInfo_t {
  char busIdLegacy[16];
  unsigned int domain;
  unsigned int bus;
  unsigned int device;
  unsigned int pciDeviceId;
  unsigned int pciSubSystemId;
  char busId[32];
};

union nvmlValue_t {
  double dVal;
  unsigned int uiVal;
  unsigned long ulVal;
  unsigned long long ullVal;
  signed long long sllVal;
};

// `timestamp` is in microseconds since 1970; `nvmlReturn` is the field's own status.
struct nvmlFieldValue_t {
  unsigned int fieldId;
  unsigned int scopeId;
  long long timestamp;
  long long latencyUsec;
  nvmlValueType_t valueType;
  nvmlReturn_t nvmlReturn;
  nvmlValue_t value;
};

struct nvmlUtilization_t {
  unsigned int gpu;
  unsigned int memory;
};

struct nvmlMemory_t {
  unsigned long long total;
  unsigned long long free;
  unsigned long long used;
};

using PFN_nvmlInit_v2 = nvmlReturn_t (*)();
using PFN_nvmlShutdown = nvmlReturn_t (*)();
using PFN_nvmlErrorString = const char* (*)(nvmlReturn_t);
using PFN_nvmlSystemGetDriverVersion = nvmlReturn_t (*)(char*, unsigned int);
using PFN_nvmlSystemGetCudaDriverVersion_v2 = nvmlReturn_t (*)(int*);
using PFN_nvmlDeviceGetCount_v2 = nvmlReturn_t (*)(unsigned int*);
using PFN_nvmlDeviceGetHandleByIndex_v2 = nvmlReturn_t (*)(unsigned int, nvmlDevice_t*);
using PFN_nvmlDeviceGetHandleByUUID = nvmlReturn_t (*)(const char*, nvmlDevice_t*);
using PFN_nvmlDeviceGetHandleByPciBusId_v2 = nvmlReturn_t (*)(const char*, nvmlDevice_t*);
using PFN_nvmlDeviceGetName = nvmlReturn_t (*)(nvmlDevice_t, char*, unsigned int);
using PFN_nvmlDeviceGetUUID = nvmlReturn_t (*)(nvmlDevice_t, char*, unsigned int);
using PFN_nvmlDeviceGetPciInfo_v3 = nvmlReturn_t (*)(nvmlDevice_t, nvmlPciInfo_t*);
using PFN_nvmlDeviceGetMigMode = nvmlReturn_t (*)(nvmlDevice_t, unsigned int*, unsigned int*);
using PFN_nvmlDeviceGetPowerUsage = nvmlReturn_t (*)(nvmlDevice_t, unsigned int*);
using PFN_nvmlDeviceGetEnforcedPowerLimit = nvmlReturn_t (*)(nvmlDevice_t, unsigned int*);
using PFN_nvmlDeviceGetTotalEnergyConsumption = nvmlReturn_t (*)(nvmlDevice_t, unsigned long long*);
using PFN_nvmlDeviceGetFieldValues = nvmlReturn_t (*)(nvmlDevice_t, int, nvmlFieldValue_t*);
using PFN_nvmlDeviceGetClockInfo = nvmlReturn_t (*)(nvmlDevice_t, nvmlClockType_t, unsigned int*);
using PFN_nvmlDeviceGetMaxClockInfo = nvmlReturn_t (*)(nvmlDevice_t, nvmlClockType_t, unsigned int*);
using PFN_nvmlDeviceGetTemperature = nvmlReturn_t (*)(nvmlDevice_t, nvmlTemperatureSensors_t, unsigned int*);
using PFN_nvmlDeviceGetCurrentClocksEventReasons = nvmlReturn_t (*)(nvmlDevice_t, unsigned long long*);
using PFN_nvmlDeviceGetCurrentClocksThrottleReasons = nvmlReturn_t (*)(nvmlDevice_t, unsigned long long*);
using PFN_nvmlDeviceGetMemoryInfo = nvmlReturn_t (*)(nvmlDevice_t, nvmlMemory_t*);
using PFN_nvmlDeviceGetPcieThroughput = nvmlReturn_t (*)(nvmlDevice_t, nvmlPcieUtilCounter_t, unsigned int*);
using PFN_nvmlDeviceGetUtilizationRates = nvmlReturn_t (*)(nvmlDevice_t, nvmlUtilization_t*);

}  // namespace fairlap::telemetry
