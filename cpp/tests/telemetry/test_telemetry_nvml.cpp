#include <cmath>
#include <cstdlib>

#include "fakes/fake_nvml.h"
#include "telemetry/nvml/nvml_source.hpp"
#include "tests/check.hpp"
#include "tests/telemetry/telemetry_at_work.hpp"

using namespace fairlap::telemetry;
using namespace fairlap::test;

namespace {

constexpr std::int64_t kSecond = 1'000'000'000;

std::unique_ptr<Source> first_device() { return std::move(nvml_sources(FAIRLAP_FAKE_NVML).front()); }

std::size_t attempts(const std::map<std::string, Reading>& readings, const std::string& name) {
  return readings.count(name);
}

}  // namespace

TEST("every kind of number is read, in the units of its name, with the device's own timestamp") {
  fake_nvml_reset();
  fake_nvml_power_constant(0, 250'500);
  fake_nvml_set_reading(0, "sm_mhz", 1200);
  fake_nvml_set_reading(0, "mem_mhz", 2000);
  fake_nvml_set_reading(0, "temperature_c", 71);
  fake_nvml_set_reading(0, "throttle_reasons", nvmlClocksThrottleReasonSwPowerCap);
  fake_nvml_set_reading(0, "utilisation_gpu", 93);
  fake_nvml_set_reading(0, "utilisation_memory", 12);
  fake_nvml_set_field(0, NVML_FI_DEV_MEMORY_TEMP, NVML_VALUE_TYPE_UNSIGNED_INT, 80, 0, 0);
  fake_nvml_set_field(0, NVML_FI_DEV_PCIE_COUNT_TX_BYTES, NVML_VALUE_TYPE_UNSIGNED_INT, 5, 10, 0);
  fake_nvml_set_field(0, NVML_FI_DEV_PERF_POLICY_POWER, NVML_VALUE_TYPE_UNSIGNED_LONG_LONG, 0, 1000, 0);
  const auto device = first_device();
  CHECK_EQUAL(device->name(), "nvml:0");
  CHECK_EQUAL(device->absent_because(), "");
  fake_nvml_advance(2 * kSecond);
  auto fast = read_once(*device, Lane::fast);
  CHECK_EQUAL(fast.size(), 1U);
  CHECK_NEAR(fast["power_instant_w"].value, 250.5, 1e-9);
  CHECK_EQUAL(fast["power_instant_w"].source_time_us, FAKE_NVML_EPOCH_US + 2'000'000);
  auto slow = read_once(*device, Lane::slow);
  slow.merge(read_once(*device, Lane::rare));
  const std::map<std::string, double> expected{{"power_average_w", 250.5},
                                               {"energy_j", 501.0},
                                               {"memory_temperature_c", 80.0},
                                               {"throttled_by_power_ns", 2000.0},
                                               {"pcie_sent_bytes", 25.0},
                                               {"sm_clock_mhz", 1200.0},
                                               {"memory_clock_mhz", 2000.0},
                                               {"temperature_c", 71.0},
                                               {"throttle_reasons_bits", 4.0},
                                               {"memory_used_bytes", 1073741824.0},
                                               {"utilisation_percent", 93.0},
                                               {"memory_utilisation_percent", 12.0},
                                               {"memory_total_bytes", 17179869184.0}};
  CHECK_EQUAL(slow.size(), expected.size());
  for (const auto& [name, value] : expected) CHECK_NEAR(slow[name].value, value, 1e-6);
  CHECK_EQUAL(field_named(*device, "pcie_sent_bytes").wraps_at, 4294967296.0);
  CHECK_EQUAL(field_named(*device, "energy_j").wraps_at, 0.0);
}

TEST("what a device does not support is absent with NVML's reason and is never asked for again") {
  fake_nvml_reset();
  fake_nvml_fail("nvmlDeviceGetUtilizationRates", 0, NVML_ERROR_NOT_SUPPORTED);
  const auto device = first_device();
  CHECK(
      contains(field_named(*device, "memory_temperature_c").absent_because, "NVML_ERROR_NOT_SUPPORTED (3)"));
  CHECK(contains(field_named(*device, "utilisation_percent").absent_because, "(3)"));
  CHECK(device->present());
  const std::int64_t calls = fake_nvml_call_count("nvmlDeviceGetUtilizationRates");
  read_once(*device, Lane::slow);
  read_once(*device, Lane::rare);
  CHECK_EQUAL(fake_nvml_call_count("nvmlDeviceGetUtilizationRates"), calls);
}

TEST("a field value that is missing is taken from the older function, where that works") {
  fake_nvml_reset();
  fake_nvml_fail_field(NVML_FI_DEV_TOTAL_ENERGY_CONSUMPTION, 0, NVML_ERROR_NOT_SUPPORTED);
  fake_nvml_fail_field(NVML_FI_DEV_POWER_AVERAGE, 0, NVML_ERROR_NOT_SUPPORTED);
  fake_nvml_fail("nvmlDeviceGetPowerUsage", 0, NVML_ERROR_NO_PERMISSION);
  const auto device = first_device();
  fake_nvml_advance(3 * kSecond);
  CHECK(field_named(*device, "energy_j").present());
  CHECK_NEAR(read_once(*device, Lane::slow)["energy_j"].value, 300.0, 1e-9);
  CHECK(!field_named(*device, "power_average_w").present());
}

TEST("throttle times that older drivers number otherwise are absent there") {
  fake_nvml_reset();
  fake_nvml_set_driver_version("570.00", 12080);
  fake_nvml_set_field(0, NVML_FI_DEV_CLOCKS_EVENT_REASON_HW_THERM_SLOWDOWN,
                      NVML_VALUE_TYPE_UNSIGNED_LONG_LONG, 1, 1, 0);
  CHECK(contains(field_named(*first_device(), "slowed_by_heat_in_hardware_ns").absent_because, "CUDA 13"));
  fake_nvml_set_driver_version("580.00", 13000);
  CHECK(field_named(*first_device(), "slowed_by_heat_in_hardware_ns").present());
}

TEST("every error of a field is reported by its code, costs only that field, and passes") {
  for (const nvmlReturn_t error : {NVML_ERROR_UNINITIALIZED, NVML_ERROR_INVALID_ARGUMENT,
                                   NVML_ERROR_NOT_SUPPORTED, NVML_ERROR_NO_PERMISSION, NVML_ERROR_NOT_FOUND,
                                   NVML_ERROR_TIMEOUT, NVML_ERROR_LIB_RM_VERSION_MISMATCH, NVML_ERROR_IN_USE,
                                   NVML_ERROR_MEMORY, NVML_ERROR_NO_DATA, NVML_ERROR_UNKNOWN}) {
    fake_nvml_reset();
    const auto device = first_device();
    fake_nvml_fail_field(NVML_FI_DEV_TOTAL_ENERGY_CONSUMPTION, 1, error);
    fake_nvml_fail("nvmlDeviceGetMemoryInfo", 1, error);
    auto readings = read_once(*device, Lane::slow);
    for (const char* name : {"energy_j", "memory_used_bytes"}) {
      CHECK(readings[name].state == ReadingState::failed);
      CHECK_EQUAL(readings[name].code, error);
      CHECK(std::isnan(readings[name].value));
    }
    CHECK(readings["power_average_w"].state == ReadingState::value);
    CHECK(contains(device->text_of(error), std::to_string(error)));
    readings = read_once(*device, Lane::slow);
    CHECK_EQUAL(attempts(readings, "energy_j"), 0U);  // one round of rest
    readings = read_once(*device, Lane::slow);
    CHECK(readings["energy_j"].state == ReadingState::value);
    CHECK(readings["memory_used_bytes"].state == ReadingState::value);
  }
}

TEST("a call that fails as a whole is reported for each of its fields") {
  fake_nvml_reset();
  const auto device = first_device();
  fake_nvml_fail("nvmlDeviceGetFieldValues", 1, NVML_ERROR_TIMEOUT);
  auto readings = read_once(*device, Lane::slow);
  for (const char* name : {"power_average_w", "energy_j"})
    CHECK_EQUAL(readings[name].code, NVML_ERROR_TIMEOUT);
  CHECK(readings["sm_clock_mhz"].state == ReadingState::value);
}

TEST("a field that keeps failing is asked half as often after each failure, and not never") {
  fake_nvml_reset();
  const auto device = first_device();
  fake_nvml_fail_field(NVML_FI_DEV_POWER_INSTANT, 0, NVML_ERROR_TIMEOUT);
  std::vector<int> asked_in;
  for (int round = 0; round < 400; ++round) {
    if (attempts(read_once(*device, Lane::fast), "power_instant_w") > 0) asked_in.push_back(round);
  }
  const std::vector<int> expected{0, 2, 5, 10, 19, 36, 69, 134, 199, 264, 329, 394};
  CHECK(asked_in == expected);
  fake_nvml_forget_faults();
  int waited = 0;
  while (attempts(read_once(*device, Lane::fast), "power_instant_w") == 0) ++waited;
  CHECK(waited <= 64);
  CHECK_EQUAL(attempts(read_once(*device, Lane::fast), "power_instant_w"), 1U);
}

TEST("a lost device is reported for every field, once, and is not asked again; others continue") {
  for (const bool unplugged : {false, true}) {
    fake_nvml_reset();
    fake_nvml_set_device_count(2);
    const auto devices = nvml_sources(FAIRLAP_FAKE_NVML);
    CHECK_EQUAL(devices.size(), 2U);
    CHECK(read_once(*devices[0], Lane::fast)["power_instant_w"].state == ReadingState::value);
    if (unplugged)
      fake_nvml_unplug(0);
    else
      fake_nvml_lose_gpu(0);
    const auto readings = read_once(*devices[0], Lane::fast);
    CHECK(readings.size() > 10U);
    for (const auto& [name, reading] : readings) {
      CHECK(reading.state == ReadingState::source_lost);
      CHECK_EQUAL(reading.code, NVML_ERROR_GPU_IS_LOST);
      CHECK(std::isnan(reading.value));
    }
    const std::int64_t calls = fake_nvml_call_count("*");
    CHECK(read_once(*devices[0], Lane::fast).empty());
    CHECK(read_once(*devices[0], Lane::slow).empty());
    CHECK_EQUAL(fake_nvml_call_count("*"), calls);
    CHECK(read_once(*devices[1], Lane::fast)["power_instant_w"].state == ReadingState::value);
  }
}

TEST("a device that is lost in the middle of a slow round stops there") {
  fake_nvml_reset();
  const auto device = first_device();
  fake_nvml_fail("nvmlDeviceGetClockInfo", 1, NVML_ERROR_GPU_IS_LOST);
  fairlap::telemetry::Ring ring(256);
  Recorder recorder(ring, fairlap::clock::Clock::named("monotonic_raw"));
  device->read(Lane::slow, recorder);
  const auto readings = taken_from(ring);
  CHECK(readings.front().state == ReadingState::value);
  CHECK(readings.back().state == ReadingState::source_lost);
  CHECK_EQUAL(fake_nvml_call_count("nvmlDeviceGetMemoryInfo"), 2);  // when the device was made
}

TEST("eight devices are eight sources") {
  fake_nvml_reset();
  fake_nvml_set_device_count(8);
  const auto devices = nvml_sources(FAIRLAP_FAKE_NVML);
  CHECK_EQUAL(devices.size(), 8U);
  for (int i = 0; i < 8; ++i) fake_nvml_power_constant(i, 1000.0 * i);
  for (std::size_t i = 0; i < 8; ++i) {
    CHECK_NEAR(read_once(*devices[i], Lane::fast)["power_instant_w"].value, static_cast<double>(i), 1e-9);
  }
}

TEST("without a library, a start, or a device, there is one absent source with the reason") {
  const auto reason = [](const std::string& path) {
    auto sources = nvml_sources(path);
    CHECK_EQUAL(sources.size(), 1U);
    CHECK(!sources[0]->present());
    CHECK(read_once(*sources[0], Lane::fast).empty());
    return sources[0]->absent_because();
  };
  CHECK(contains(reason("/nowhere/libnvidia-ml.so.1"), "could not be loaded"));
  fake_nvml_reset();
  fake_nvml_fail("nvmlInit_v2", 1, NVML_ERROR_DRIVER_NOT_LOADED);
  CHECK(contains(reason(FAIRLAP_FAKE_NVML), "does not start"));
  fake_nvml_set_device_count(0);
  CHECK(contains(reason(FAIRLAP_FAKE_NVML), "lists no device"));
  fake_nvml_fail("nvmlDeviceGetCount_v2", 1, NVML_ERROR_UNKNOWN);
  CHECK(contains(reason(FAIRLAP_FAKE_NVML), "cannot be counted"));
  CHECK(contains(reason("libm.so.6"), "is not NVML"));
  setenv("FAIRLAP_LIBNVML", "/chosen/elsewhere.so", 1);
  CHECK(contains(reason(""), "/chosen/elsewhere.so"));
  unsetenv("FAIRLAP_LIBNVML");
}

TEST("a device that cannot be opened is absent, and every start of NVML is ended") {
  fake_nvml_reset();
  fake_nvml_fail("nvmlDeviceGetHandleByIndex_v2", 1, NVML_ERROR_NO_PERMISSION);
  {
    const auto devices = nvml_sources(FAIRLAP_FAKE_NVML);
    CHECK(contains(devices[0]->absent_because(), "cannot be opened"));
    CHECK_EQUAL(fake_nvml_outstanding_inits(), 1);
  }
  CHECK_EQUAL(fake_nvml_outstanding_inits(), 0);
}

TEST_MAIN()

TEST("at 1 kHz for a minute, every reading arrives and every publication is caught") {
  constexpr std::int64_t kMs = 1'000'000;
  fake_nvml_reset();
  fake_nvml_power_constant(0, 0);
  fake_nvml_power_point(0, 0, 0, 0);
  fake_nvml_power_point(0, 1000 * kSecond, 10'000'000, 1);  // a watt more with each publication
  fake_nvml_power_sensor(0, 100 * kMs, 0, 0, kSecond);
  const auto device = first_device();
  Ring ring(64);
  Recorder recorder(ring, fairlap::clock::Clock::named("monotonic_raw"));
  std::vector<Reading> power;
  std::size_t counted = 0;
  for (int ms = 0; ms <= 60'000; ++ms) {
    device->read(Lane::fast, recorder);
    for (const Reading& reading : taken_from(ring)) power.push_back(reading);
    if (ms % 100 == 0) device->read(Lane::slow, recorder);
    for (const Reading& reading : taken_from(ring)) {
      if (device->fields().at(reading.field).name == "energy_j") ++counted;
    }
    fake_nvml_advance(kMs);
  }
  CHECK_EQUAL(ring.overflowed(), 0U);
  CHECK_EQUAL(counted, 601U);
  CHECK_EQUAL(power.size(), 60'001U);
  for (std::size_t i = 0; i < power.size(); ++i) {
    CHECK_NEAR(power[i].value, static_cast<double>(i / 100), 1e-9);
  }
}

// On an H100 with driver 580 reading the energy counter takes 3.3 ms, three thousand times as long as most
// fields.
TEST("what is expensive to read on this device is read rarely") {
  fake_nvml_reset();
  const auto lane_of_memory = [] {
    const auto device = first_device();
    for (const Field& field : device->fields()) {
      if (field.name == "memory_used_bytes") return field.lane;
    }
    throw Failure("there is no field of that name");
  };
  CHECK(lane_of_memory() == Lane::slow);
  fake_nvml_use_real_clock(1);
  fake_nvml_set_cost("nvmlDeviceGetMemoryInfo", 300'000);
  CHECK(lane_of_memory() == Lane::rare);
  const auto device = first_device();
  CHECK_EQUAL(attempts(read_once(*device, Lane::slow), "memory_used_bytes"), 0U);
  CHECK_EQUAL(attempts(read_once(*device, Lane::rare), "memory_used_bytes"), 1U);
  fake_nvml_use_real_clock(0);
  fake_nvml_reset();
}
