/* Control of libfairlap_fake_cupti.so, the replacement of libcupti.so.
 *
 * It records what libfairlap_fake_cuda.so executes, with exact virtual start and end. Records are collected
 * as work ends and handed over, in buffers requested from the client, when the client flushes (on its own
 * thread) or when a test calls fake_cupti_deliver (on a thread of the library, as the real one does when a
 * buffer is full). Timestamps are the virtual clock plus fake_cupti_epoch_ns, the wall clock as it was at
 * the last reset: CUPTI's own clock is CLOCK_REALTIME. They are FAKE_CUPTI_CYCLES_PER_NS times as much
 * after a client has registered a callback that does not return the wall clock in nanoseconds, such as the
 * one of PyTorch's profiler, which returns the processor's counter. The times of records can be apart from
 * the clock, as those of a device are from the host's.
 */
#ifndef FAIRLAP_FAKES_FAKE_CUPTI_H
#define FAIRLAP_FAKES_FAKE_CUPTI_H

#include <stdint.h>

#define FAKE_CUPTI_API __attribute__((visibility("default")))
#define FAKE_CUPTI_CYCLES_PER_NS 3U

#ifdef __cplusplus
extern "C" {
#endif

/* No subscriber, nothing enabled, no records, no faults, version 130001. */
FAKE_CUPTI_API void fake_cupti_reset(void);
FAKE_CUPTI_API int64_t fake_cupti_epoch_ns(void);
/* CUPTI_API_VERSION; the size of records follows it. */
FAKE_CUPTI_API void fake_cupti_set_version(uint32_t version);
/* How much later than by the clock the times in records are (0 by default), or earlier below 0. */
FAKE_CUPTI_API void fake_cupti_set_records_late_by(int64_t ns);
/* Another profiler holds the library: subscribing is refused. */
FAKE_CUPTI_API void fake_cupti_set_held_by_another(int held);
/* The next n records are dropped and counted as dropped. */
FAKE_CUPTI_API void fake_cupti_drop_records(int64_t n);
/* The nth record of a kernel delivered from now on (1 is the next) is incomplete, as a forced flush may
 * deliver it: without times, with a start but no end, or never written, which also makes the rest of its
 * buffer unreadable. */
typedef enum fake_cupti_spoiling {
  FAKE_CUPTI_NO_TIMES = 0,
  FAKE_CUPTI_NO_END = 1,
  FAKE_CUPTI_NEVER_WRITTEN = 2
} fake_cupti_spoiling;
FAKE_CUPTI_API void fake_cupti_spoil_record(int64_t nth, fake_cupti_spoiling spoiling);
FAKE_CUPTI_API void fake_cupti_deliver(void);

FAKE_CUPTI_API void fake_cupti_fail(const char* function, int64_t nth_call, int error);
FAKE_CUPTI_API void fake_cupti_forget_faults(void);
FAKE_CUPTI_API int64_t fake_cupti_call_count(const char* function);
/* "subscribers", "enabled_kinds", "held_records", "buffers" (requested and not completed); -1: no such kind.
 */
FAKE_CUPTI_API int64_t fake_cupti_outstanding(const char* kind);

#ifdef __cplusplus
}
#endif

#endif
