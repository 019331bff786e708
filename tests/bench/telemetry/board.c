/* libnvidia-ml.so.1 for every process of the benchmark: the fake NVML on the real clock. What is called again
 * and again is here, so that a call costs BENCH_NVML_CALL_NS and not what the fake's bookkeeping
 * needs; so are the few functions that pynvml and the peers look for besides. */
#include <stdint.h>
#include <stdlib.h>
#include <time.h>

#include "fakes/fake_nvml.h"

enum { SUCCESS = 0, NOT_SUPPORTED = 3 };
int nvmlInit_v2(void);

static int64_t cost_ns;

static int64_t now_ns(void) {
  struct timespec time;
  clock_gettime(CLOCK_MONOTONIC, &time);
  return (int64_t)time.tv_sec * 1000000000 + time.tv_nsec;
}

/* Keeps the core busy, as a driver's call does; gives the time. */
static int64_t at_work(void) {
  const int64_t until_ns = now_ns() + cost_ns;
  int64_t now = 0;
  while ((now = now_ns()) < until_ns) {
  }
  return now;
}

__attribute__((constructor)) static void plug_in(void) {
  const char* const cost = getenv("BENCH_NVML_CALL_NS");
  cost_ns = cost != 0 ? atoll(cost) : 0;
  fake_nvml_use_real_clock(1);
  fake_nvml_power_constant(0, 250000);
}

/* As NVIDIA declares it. */
struct field_value {
  unsigned int field;
  unsigned int scope;
  long long timestamp_us;
  long long latency_us;
  int type;
  int status;
  union {
    unsigned int small;
    unsigned long long large;
  } value;
};

static unsigned int power_mw(int64_t now) { return 250000 + (unsigned int)(now / 100000000 % 7); }
static unsigned long long energy_mj(int64_t now) { return (unsigned long long)(now / 100000000 * 25000); }

int nvmlDeviceGetFieldValues(void* device, int count, struct field_value* values) {
  const int64_t now = at_work();
  (void)device;
  for (int i = 0; i < count; ++i) {
    values[i].timestamp_us = now / 1000;
    values[i].status = SUCCESS;
    values[i].type = 1;
    if (values[i].field == 185 || values[i].field == 186) {
      values[i].value.small = power_mw(now);
    } else if (values[i].field == 83) {
      values[i].type = 3;
      values[i].value.large = energy_mj(now);
    } else {
      values[i].status = NOT_SUPPORTED;
    }
  }
  return SUCCESS;
}
int nvmlDeviceGetPowerUsage(void* device, unsigned int* out) {
  (void)device;
  *out = power_mw(at_work());
  return SUCCESS;
}
int nvmlDeviceGetTotalEnergyConsumption(void* device, unsigned long long* out) {
  (void)device;
  *out = energy_mj(at_work());
  return SUCCESS;
}
int nvmlDeviceGetClockInfo(void* device, int which, unsigned int* out) {
  (void)device, (void)at_work();
  *out = which == 2 ? 2619 : 1980;
  return SUCCESS;
}
int nvmlDeviceGetTemperature(void* device, int sensor, unsigned int* out) {
  (void)device, (void)sensor, (void)at_work();
  *out = 40;
  return SUCCESS;
}
int nvmlDeviceGetCurrentClocksEventReasons(void* device, unsigned long long* out) {
  (void)device, (void)at_work();
  *out = 0;
  return SUCCESS;
}
int nvmlDeviceGetMemoryInfo(void* device, unsigned long long out[3]) {
  (void)device, (void)at_work();
  out[0] = 16ULL << 30;
  out[1] = 15ULL << 30;
  out[2] = 1ULL << 30;
  return SUCCESS;
}
int nvmlDeviceGetUtilizationRates(void* device, unsigned int out[2]) {
  (void)device, (void)at_work();
  out[0] = out[1] = 50;
  return SUCCESS;
}

int nvmlInitWithFlags(unsigned int flags) {
  (void)flags;
  return nvmlInit_v2();
}
int nvmlDeviceGetArchitecture(void* device, unsigned int* out) {
  (void)device;
  *out = 9;
  return SUCCESS;
}
int nvmlDeviceGetComputeMode(void* device, int* out) {
  (void)device;
  *out = 0;
  return SUCCESS;
}
int nvmlDeviceGetPersistenceMode(void* device, int* out) {
  (void)device;
  *out = 1;
  return SUCCESS;
}
int nvmlDeviceGetPowerManagementDefaultLimit(void* device, unsigned int* out) {
  (void)device;
  *out = 700000;
  return SUCCESS;
}
int nvmlDeviceGetPowerManagementLimit(void* device, unsigned int* out) {
  return nvmlDeviceGetPowerManagementDefaultLimit(device, out);
}
int nvmlDeviceGetPowerManagementLimitConstraints(void* device, unsigned int* low, unsigned int* high) {
  *low = 100000;
  return nvmlDeviceGetPowerManagementDefaultLimit(device, high);
}
static int no_processes(unsigned int* count) {
  *count = 0;
  return SUCCESS;
}
int nvmlDeviceGetComputeRunningProcesses_v3(void* device, unsigned int* count, void* out) {
  (void)device, (void)out;
  return no_processes(count);
}
int nvmlDeviceGetGraphicsRunningProcesses_v3(void* device, unsigned int* count, void* out) {
  (void)device, (void)out;
  return no_processes(count);
}
