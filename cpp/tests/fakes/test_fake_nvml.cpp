#include <atomic>
#include <chrono>
#include <string>
#include <thread>
#include <vector>

#include "fakes/fake_nvml.h"
#include "fakes/nvml/exports.hpp"
#include "tests/check.hpp"

using namespace fairlap::telemetry;
using namespace fairlap::test;

namespace {

constexpr std::int64_t kMillisecond = 1'000'000;
constexpr std::int64_t kSecond = 1000 * kMillisecond;

// One device, NVML initialised.
struct Monitored {
  Monitored() {
    fake_nvml_reset();
    CHECK_EQUAL(nvmlInit_v2(), NVML_SUCCESS);
    device = handle(0);
  }

  static nvmlDevice_t handle(unsigned int index) {
    nvmlDevice_t found = nullptr;
    CHECK_EQUAL(nvmlDeviceGetHandleByIndex_v2(index, &found), NVML_SUCCESS);
    return found;
  }

  [[nodiscard]] nvmlFieldValue_t field(unsigned int id) const {
    nvmlFieldValue_t value{};
    value.fieldId = id;
    CHECK_EQUAL(nvmlDeviceGetFieldValues(device, 1, &value), NVML_SUCCESS);
    return value;
  }

  [[nodiscard]] unsigned int instant_mw() const { return field(NVML_FI_DEV_POWER_INSTANT).value.uiVal; }

  [[nodiscard]] unsigned long long energy_mj() const {
    unsigned long long energy = 0;
    CHECK_EQUAL(nvmlDeviceGetTotalEnergyConsumption(device, &energy), NVML_SUCCESS);
    return energy;
  }

  nvmlDevice_t device = nullptr;
};

}  // namespace

TEST("devices are found by index, UUID and PCI bus, and report their names") {
  const Monitored one;
  fake_nvml_set_device_count(3);
  unsigned int count = 0;
  nvmlDeviceGetCount_v2(&count);
  CHECK_EQUAL(count, 3U);
  const nvmlDevice_t third = Monitored::handle(2);
  char text[NVML_DEVICE_UUID_V2_BUFFER_SIZE];
  CHECK_EQUAL(nvmlDeviceGetUUID(third, text, sizeof text), NVML_SUCCESS);
  nvmlDevice_t found = nullptr;
  CHECK_EQUAL(nvmlDeviceGetHandleByUUID(text, &found), NVML_SUCCESS);
  CHECK(found == third);
  nvmlPciInfo_t pci{};
  CHECK_EQUAL(nvmlDeviceGetPciInfo_v3(third, &pci), NVML_SUCCESS);
  CHECK_EQUAL(std::string(pci.busId), "00000000:03:00.0");
  CHECK_EQUAL(std::string(pci.busIdLegacy), "0000:03:00.0");
  for (const char* id : {pci.busId, pci.busIdLegacy}) {
    CHECK_EQUAL(nvmlDeviceGetHandleByPciBusId_v2(id, &found), NVML_SUCCESS);
    CHECK(found == third);
  }
  CHECK_EQUAL(nvmlDeviceGetHandleByPciBusId_v2("0000:77:00.0", &found), NVML_ERROR_NOT_FOUND);
  CHECK_EQUAL(nvmlDeviceGetName(third, text, 5), NVML_ERROR_INSUFFICIENT_SIZE);
  CHECK_EQUAL(nvmlDeviceGetHandleByIndex_v2(3, &found), NVML_ERROR_INVALID_ARGUMENT);
  CHECK_EQUAL(nvmlSystemGetDriverVersion(text, sizeof text), NVML_SUCCESS);
  CHECK_EQUAL(std::string(text), "580.00.00");
  int cuda = 0;
  CHECK_EQUAL(nvmlSystemGetCudaDriverVersion_v2(&cuda), NVML_SUCCESS);
  CHECK_EQUAL(cuda, 13000);
}

TEST("power is published at its period and is constant between") {
  const Monitored one;
  fake_nvml_power_constant(0, 100'000);
  fake_nvml_power_point(0, 1 * kSecond, 300'000, 0);
  fake_nvml_power_sensor(0, 100 * kMillisecond, 30 * kMillisecond, 0, kSecond);
  fake_nvml_advance(1 * kSecond + 29 * kMillisecond);
  CHECK_EQUAL(one.instant_mw(), 100'000U);
  fake_nvml_advance(1 * kMillisecond);
  CHECK_EQUAL(one.instant_mw(), 300'000U);
}

TEST("a sensor's window averages what happened in it and sees nothing outside") {
  const Monitored one;
  fake_nvml_power_constant(0, 100'000);
  fake_nvml_power_point(0, 1000 * kMillisecond, 500'000, 0);  // a pulse of 50 ms
  fake_nvml_power_point(0, 1050 * kMillisecond, 100'000, 0);
  fake_nvml_power_sensor(0, 100 * kMillisecond, 0, 25 * kMillisecond, kSecond);
  fake_nvml_advance(1100 * kMillisecond);
  CHECK_EQUAL(one.instant_mw(), 100'000U);  // the window was [1075, 1100]
  fake_nvml_power_sensor(0, 100 * kMillisecond, 60 * kMillisecond, 20 * kMillisecond, kSecond);
  CHECK_EQUAL(one.instant_mw(), 300'000U);  // published at 1060, half of [1040, 1060] was in the pulse
}

TEST("power usage is the average over a second") {
  const Monitored one;
  fake_nvml_power_constant(0, 0);
  fake_nvml_power_point(0, 0, 0, 0);
  fake_nvml_power_point(0, 2 * kSecond, 200'000, 1);  // a ramp
  fake_nvml_advance(2 * kSecond);
  unsigned int power = 0;
  CHECK_EQUAL(nvmlDeviceGetPowerUsage(one.device, &power), NVML_SUCCESS);
  CHECK_EQUAL(power, 150'000U);
  CHECK_EQUAL(one.field(NVML_FI_DEV_POWER_AVERAGE).value.uiVal, 150'000U);
}

TEST("the energy counter steps at its period, by the integral of power") {
  const Monitored one;
  fake_nvml_power_constant(0, 0);
  fake_nvml_power_point(0, 1 * kSecond, 100'000, 1);  // 50 J by then
  fake_nvml_power_point(0, 2 * kSecond, 40'000, 0);   // 100 J more, then 40 J a second
  fake_nvml_energy_counter(0, 1000, 100 * kMillisecond, 0);
  fake_nvml_advance(1 * kSecond);
  CHECK_EQUAL(one.energy_mj(), 51'000U);
  fake_nvml_advance(2 * kSecond + 99 * kMillisecond);
  CHECK_EQUAL(one.energy_mj(), 191'000U);
  CHECK_EQUAL(one.field(NVML_FI_DEV_TOTAL_ENERGY_CONSUMPTION).value.ullVal, 191'000U);
  fake_nvml_advance(1 * kMillisecond);
  CHECK_EQUAL(one.energy_mj(), 195'000U);
}

TEST("the energy counter wraps at its limit, and may go backwards") {
  const Monitored one;
  fake_nvml_energy_counter(0, 9'900, 100 * kMillisecond, 10'000);
  fake_nvml_power_constant(0, 1'000);
  fake_nvml_advance(1 * kSecond);
  CHECK_EQUAL(one.energy_mj(), 900U);
  fake_nvml_energy_counter(0, 0, 100 * kMillisecond, 0);
  fake_nvml_power_constant(0, 0);
  CHECK_EQUAL(one.energy_mj(), 0U);
}

TEST("each field has its own timestamp and status") {
  const Monitored one;
  fake_nvml_set_field(0, NVML_FI_DEV_PCIE_COUNT_TX_BYTES, NVML_VALUE_TYPE_UNSIGNED_INT, 4'000'000'000U,
                      1'000'000'000U, std::uint64_t{1} << 32);
  fake_nvml_advance(2 * kSecond);
  nvmlFieldValue_t values[3]{};
  values[0].fieldId = NVML_FI_DEV_POWER_INSTANT;
  values[1].fieldId = NVML_FI_DEV_MEMORY_TEMP;  // never set
  values[2].fieldId = NVML_FI_DEV_PCIE_COUNT_TX_BYTES;
  CHECK_EQUAL(nvmlDeviceGetFieldValues(one.device, 3, values), NVML_SUCCESS);
  CHECK_EQUAL(values[0].nvmlReturn, NVML_SUCCESS);
  CHECK_EQUAL(values[0].timestamp, FAKE_NVML_EPOCH_US + 2'000'000);
  CHECK_EQUAL(values[1].nvmlReturn, NVML_ERROR_NOT_SUPPORTED);
  CHECK_EQUAL(values[2].nvmlReturn, NVML_SUCCESS);
  CHECK_EQUAL(values[2].value.uiVal, static_cast<unsigned int>(6'000'000'000ULL - (1ULL << 32)));
  fake_nvml_fail_field(NVML_FI_DEV_POWER_INSTANT, 2, NVML_ERROR_TIMEOUT);
  CHECK_EQUAL(one.field(NVML_FI_DEV_POWER_INSTANT).nvmlReturn, NVML_SUCCESS);
  CHECK_EQUAL(one.field(NVML_FI_DEV_POWER_INSTANT).nvmlReturn, NVML_ERROR_TIMEOUT);
  CHECK_EQUAL(one.field(NVML_FI_DEV_POWER_INSTANT).nvmlReturn, NVML_SUCCESS);
}

TEST("a lost device gives its error and stays listed; an unplugged one is not listed") {
  const Monitored one;
  fake_nvml_set_device_count(2);
  const nvmlDevice_t first = Monitored::handle(0);
  const nvmlDevice_t second = Monitored::handle(1);
  unsigned int value = 0;
  fake_nvml_lose_gpu(1);
  CHECK_EQUAL(nvmlDeviceGetPowerUsage(second, &value), NVML_ERROR_GPU_IS_LOST);
  nvmlDeviceGetCount_v2(&value);
  CHECK_EQUAL(value, 2U);
  fake_nvml_unplug(0);
  CHECK_EQUAL(nvmlDeviceGetPowerUsage(first, &value), NVML_ERROR_GPU_IS_LOST);
  nvmlDeviceGetCount_v2(&value);
  CHECK_EQUAL(value, 1U);
  CHECK(Monitored::handle(0) == second);
}

TEST("an instance of a MIG device is found by its UUID, is not listed, and has no energy reading") {
  fake_nvml_reset();
  nvmlInit_v2();
  fake_nvml_set_device_count(2);
  nvmlDevice_t whole = nullptr;
  CHECK_EQUAL(nvmlDeviceGetHandleByIndex_v2(1, &whole), NVML_SUCCESS);
  unsigned int now = 9;
  unsigned int pending = 9;
  CHECK_EQUAL(nvmlDeviceGetMigMode(whole, &now, &pending), NVML_ERROR_NOT_SUPPORTED);
  CHECK_EQUAL(fake_nvml_add_mig_instance(7, "MIG-x"), -1);
  const int instance = fake_nvml_add_mig_instance(1, "MIG-x");
  CHECK_EQUAL(fake_nvml_set_reading(instance, "memory_total", 5), 1);
  CHECK_EQUAL(nvmlDeviceGetMigMode(whole, &now, &pending), NVML_SUCCESS);
  CHECK_EQUAL(now, 1U);
  unsigned int count = 0;
  CHECK_EQUAL(nvmlDeviceGetCount_v2(&count), NVML_SUCCESS);
  CHECK_EQUAL(count, 2U);
  nvmlDevice_t part = nullptr;
  CHECK_EQUAL(nvmlDeviceGetHandleByUUID("MIG-x", &part), NVML_SUCCESS);
  nvmlMemory_t memory{};
  CHECK_EQUAL(nvmlDeviceGetMemoryInfo(part, &memory), NVML_SUCCESS);
  CHECK_EQUAL(memory.total, 5U);
  unsigned long long energy = 0;
  CHECK_EQUAL(nvmlDeviceGetTotalEnergyConsumption(part, &energy), NVML_ERROR_NOT_SUPPORTED);
  nvmlDevice_t found = nullptr;
  CHECK_EQUAL(nvmlDeviceGetHandleByPciBusId_v2("0000:02:00.0", &found), NVML_SUCCESS);
  CHECK(found == whole);
}

TEST("a name that is no PCI address is an invalid argument, an unknown UUID is not found, as on cards") {
  fake_nvml_reset();
  nvmlInit_v2();
  nvmlDevice_t found = nullptr;
  CHECK_EQUAL(nvmlDeviceGetHandleByPciBusId_v2("", &found), NVML_ERROR_INVALID_ARGUMENT);
  CHECK_EQUAL(nvmlDeviceGetHandleByPciBusId_v2("0000:77:00.0", &found), NVML_ERROR_NOT_FOUND);
  CHECK_EQUAL(nvmlDeviceGetHandleByUUID("GPU-x", &found), NVML_ERROR_NOT_FOUND);
}

TEST_MAIN()
