/* libnvidia-ml.so.1 for every process of the benchmark: the fake NVML on the real clock, each call at the cost that
 * BENCH_NVML_CALL_NS says, and the few functions besides that pynvml and the peers look for. */
#include <stdlib.h>

#include "fakes/fake_nvml.h"

enum { SUCCESS = 0, NOT_SUPPORTED = 3 };
int nvmlInit_v2(void);

__attribute__((constructor)) static void plug_in(void) {
  const char* const cost_ns = getenv("BENCH_NVML_CALL_NS");
  fake_nvml_use_real_clock(1);
  fake_nvml_power_constant(0, 250000);
  fake_nvml_set_cost("*", cost_ns != 0 ? atoll(cost_ns) : 0);
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
