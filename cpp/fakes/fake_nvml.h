/* Control of libfairlap_fake_nvml.so, the replacement of libnvidia-ml.so.1.
 *
 * Time is in nanoseconds from the fake's own beginning. It does not move until a test moves it, or follows
 * the real clock. Power is a waveform of that time; a sensor looks at its average over a window and publishes
 * at a period; the energy counter is the waveform's integral, published at a period of its own. Devices are
 * numbered in the order they were made, whatever was unplugged since.
 *
 * Readings for fake_nvml_set_reading, with their defaults: "graphics_mhz" 1980, "sm_mhz" 1980, "mem_mhz"
 * 2619, "max_graphics_mhz" 1980, "max_sm_mhz" 1980, "max_mem_mhz" 2619, "temperature_c" 40,
 * "throttle_reasons" 0, "memory_total" 16 GiB, "memory_used" 1 GiB, "pcie_tx_kb_s" 0, "pcie_rx_kb_s" 0,
 * "utilisation_gpu" 0, "utilisation_memory" 0, "power_limit_mw" 700000.
 */
#ifndef FAIRLAP_FAKES_FAKE_NVML_H
#define FAIRLAP_FAKES_FAKE_NVML_H

#include <stdint.h>

#define FAKE_NVML_API __attribute__((visibility("default")))
/* What time zero of the test's clock is in the timestamps of field values, in microseconds since 1970. With
 * the real clock they are the wall's. */
#define FAKE_NVML_EPOCH_US 1700000000000000LL

#ifdef __cplusplus
extern "C" {
#endif

/* One device at 100 W with a 100 ms sensor, test clock at 0, no cost per call, no faults. */
FAKE_NVML_API void fake_nvml_reset(void);
FAKE_NVML_API void fake_nvml_set_device_count(int count);
/* Puts the device into MIG mode and gives it an instance, found by its UUID ("MIG-..."). Gives the number of
 * the instance for fake_nvml_set_reading; -1 when there is no such device. Make devices first. */
FAKE_NVML_API int fake_nvml_add_mig_instance(int device, const char* uuid);
FAKE_NVML_API void fake_nvml_set_driver_version(const char* version, int cuda_version);

/* Time. With the real clock, costs are spun away, as in a driver, and hold what the fake itself needs; else
 * they move the test's clock. */
FAKE_NVML_API void fake_nvml_use_real_clock(int real);
FAKE_NVML_API int64_t fake_nvml_now_ns(void);
FAKE_NVML_API void fake_nvml_advance(int64_t ns);
FAKE_NVML_API void fake_nvml_set_cost(const char* function, int64_t ns); /* "*": every function */

/* Power: constant, or points to which it jumps (0) or runs in a straight line from the point before (1).
 * Points are given in the order of time. */
FAKE_NVML_API void fake_nvml_power_constant(int device, double milliwatts);
FAKE_NVML_API void fake_nvml_power_point(int device, int64_t time_ns, double milliwatts, int straight_line);
/* The instant sensor sees `window_ns` before each publication; power usage and the average field see
 * `average_ns` (default 1 s). */
FAKE_NVML_API void fake_nvml_power_sensor(int device, int64_t period_ns, int64_t phase_ns, int64_t window_ns,
                                          int64_t average_ns);
/* The counter starts at `start_mj`, steps every `period_ns`, and wraps at `wrap_mj` (0: never). */
FAKE_NVML_API void fake_nvml_energy_counter(int device, uint64_t start_mj, int64_t period_ns,
                                            uint64_t wrap_mj);

FAKE_NVML_API int fake_nvml_set_reading(int device, const char* reading,
                                        uint64_t value); /* 0: no such reading */
/* A field that counts: its value is start + per_second * seconds, wrapping at `wrap` (0: never). A field that
 * was never set is not supported. Power, average power and the two energy fields are there from the start. */
FAKE_NVML_API void fake_nvml_set_field(int device, uint32_t field, int value_type, uint64_t start,
                                       uint64_t per_second, uint64_t wrap);

/* Failures, as in fake_cuda.h; of a whole call, or of one field inside a call that succeeds. */
FAKE_NVML_API void fake_nvml_fail(const char* function, int64_t nth_call, int error);
FAKE_NVML_API void fake_nvml_fail_field(uint32_t field, int64_t nth_read, int error);
FAKE_NVML_API void fake_nvml_forget_faults(void);
/* Every call for the device gives NVML_ERROR_GPU_IS_LOST; unplugged, it is not listed any more either. */
FAKE_NVML_API void fake_nvml_lose_gpu(int device);
FAKE_NVML_API void fake_nvml_unplug(int device);

FAKE_NVML_API int64_t fake_nvml_call_count(const char* function); /* "*": all */
FAKE_NVML_API int64_t fake_nvml_outstanding_inits(void);

#ifdef __cplusplus
}
#endif

#endif
