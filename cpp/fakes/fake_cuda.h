/* Control of libfairlap_fake_cuda.so, the replacement of libcuda.so.1.
 *
 * For C++ tests and, through ctypes, for Python tests. All times are integer virtual nanoseconds.
 *
 * The model. There is one host clock ("now"). It moves only by the cost of each API call, by the waits of
 * calls that block, and by fake_cuda_advance_host. Work starts at the later of its stream's end and the now
 * at which it was enqueued. A stream held by a wait on a value, or by fairlap's spin gate, keeps what is
 * behind it pending; the flag is ordinary memory which any thread may write at any real time, and it is
 * looked at when an API call begins and while a blocking call waits. A call that waits for a closed gate
 * really blocks.
 *
 * Memory can be shared by processes that have one file as CUDA_FAKE_BOARD when they load the library, which
 * is 1 GiB of memory that is not used again before all of them have ended.
 *
 * What was given back and is used again (events, streams, memory, modules and their functions) is noted,
 * whatever becomes of the error that the call returns. With a file named in CUDA_FAKE_REPORT the library adds
 * to it, as the process ends, a line for each misuse and for each kind of which something is left.
 *
 * Kinds for fake_cuda_outstanding: "streams", "events", "device_allocations", "device_bytes",
 * "host_allocations", "host_registrations", "graphs", "graph_execs", "modules", "further_modules" (beyond the
 * first of each context), "primary_retains", "pushed_contexts", "peer_accesses". Streams and contexts made
 * through this header are a framework's and are not counted.
 */
#ifndef FAIRLAP_FAKES_FAKE_CUDA_H
#define FAIRLAP_FAKES_FAKE_CUDA_H

#include <stdint.h>

#if defined(__GNUC__)
#define FAKE_CUDA_API __attribute__((visibility("default")))
#else
#define FAKE_CUDA_API
#endif

#ifdef __cplusplus
extern "C" {
#endif

/* Back to one device with no context, driver 13.0, default costs, no faults, now = 0. */
FAKE_CUDA_API void fake_cuda_reset(void);

/* The machine. Devices already in use keep their state when the count grows. */
FAKE_CUDA_API void fake_cuda_set_device_count(int count);
FAKE_CUDA_API void fake_cuda_set_driver_version(int version); /* 1000 * major + 10 * minor */
FAKE_CUDA_API void fake_cuda_set_device_attribute(int device, int attribute, int value);
FAKE_CUDA_API void fake_cuda_set_device_memory(int device, uint64_t bytes);
/* What of the L2 cache a framework has set aside for lines that persist (0 by default). */
FAKE_CUDA_API void fake_cuda_set_aside_for_persisting(int device, uint64_t bytes);
/* Where a device sits (its own number by default): slot n has PCI bus n + 1, as board n of the fake NVML. */
FAKE_CUDA_API void fake_cuda_set_device_slot(int device, int slot);
/* The UUID as 32 hexadecimal digits, with or without dashes; an instance of a MIG device has its own. */
FAKE_CUDA_API void fake_cuda_set_device_uuid(int device, const char* digits);
/* Launches wait for their kernel, as the driver's do under CUDA_LAUNCH_BLOCKING=1. */
FAKE_CUDA_API void fake_cuda_set_launches_block(int block);
/* Whether the driver can assemble PTX; a container may lack libnvidia-ptxjitcompiler. */
FAKE_CUDA_API void fake_cuda_set_jit(int present);
/* When an event of a context happens: when all of its busy streams get there (the default), or just one of
 * them does, which its documentation would not forbid. */
enum {
  FAKE_CUDA_OF_ALL = 0,
  FAKE_CUDA_OF_FIRST_TO_END = 1,
  FAKE_CUDA_OF_FIRST_MADE = 2,
  FAKE_CUDA_OF_LAST_MADE = 3
};
FAKE_CUDA_API void fake_cuda_set_context_events_of(int whose);
/* Streams that wait for a value: 0 held, as they should be; 1 refused with CUDA_ERROR_NOT_SUPPORTED; 2
 * accepted and not held. */
FAKE_CUDA_API void fake_cuda_set_stream_waits(int behaviour);
/* Step of the device's own nanosecond counter, which fairlap's kernels read (default 32 ns). */
FAKE_CUDA_API void fake_cuda_set_globaltimer_step(int64_t ns);
/* The driver of this machine lacks the function: no lookup finds it. */
FAKE_CUDA_API void fake_cuda_hide_function(const char* function);

/* Contexts, as a framework makes them. Zero or NULL when there is none. */
FAKE_CUDA_API uint64_t fake_cuda_activate_primary_context(int device);
FAKE_CUDA_API void fake_cuda_deactivate_primary_context(int device);
FAKE_CUDA_API uint64_t fake_cuda_create_context(int device);
FAKE_CUDA_API int fake_cuda_destroy_context(uint64_t context);
/* Makes it the calling thread's only context; 0 leaves the thread without one. */
FAKE_CUDA_API void fake_cuda_make_current(uint64_t context);
FAKE_CUDA_API uint64_t fake_cuda_current_context(void);

/* Streams, as a framework makes them. Gives the handle, 0 when the context is not alive. */
FAKE_CUDA_API uint64_t fake_cuda_create_stream(uint64_t context, int non_blocking);
FAKE_CUDA_API int fake_cuda_destroy_stream(uint64_t stream);

/* Work, as a framework enqueues it; the results are CUresult values. A stream may be 0, 1 or 2 (the default
 * streams of the calling thread's context). The call costs the host what cuLaunchKernel costs. */
FAKE_CUDA_API int fake_cuda_kernel(uint64_t stream, const char* name, int64_t duration_ns);
FAKE_CUDA_API int fake_cuda_copy(uint64_t stream, int copy_kind, uint64_t bytes, int64_t duration_ns);
/* How long a kernel launched through cuLaunchKernel lasts, by name; 1000 ns by default. fairlap's
 * own kernels act by their meaning instead. */
FAKE_CUDA_API void fake_cuda_set_kernel_duration(const char* name, int64_t duration_ns);

/* How fast a device does what the kernels of fairlap's roofs repeat: instructions of a PTX operation per
 * second, each thread's counted ("fma.rn.f32"; 1e13 by default), and bytes of a triad, in arrays that fit
 * into the L2 cache together and in those that do not (6e12 and 3e12). */
FAKE_CUDA_API void fake_cuda_set_instruction_rate(const char* operation, double per_second);

/* Kernels of roofs that repeat this PTX operation find all sums wrong when they check them. */
FAKE_CUDA_API void fake_cuda_set_wrong_sums(const char* operation);
FAKE_CUDA_API void fake_cuda_set_bandwidths(double cache_bytes_per_second, double memory_bytes_per_second);
/* How fast the link to the host is in each direction, which do not slow each other down (25e9), and what each
 * copy or fill takes besides (1000 ns). */
FAKE_CUDA_API void fake_cuda_set_link(double to_device_bytes_per_second, double from_device_bytes_per_second,
                                      int64_t latency_ns);
/* How fast copies from one device to another are once a context of one has access to one of the other; the
 * two devices can then have it both ways. Without it copies go through the host: into it and out of it. */
FAKE_CUDA_API void fake_cuda_set_peer_link(int from, int to, double bytes_per_second);

/* The clock. */
FAKE_CUDA_API int64_t fake_cuda_now_ns(void);
FAKE_CUDA_API void fake_cuda_advance_host(int64_t ns);
/* Cost of a call on the host; "*" sets every function. The defaults are in cuda/costs.cpp. */
FAKE_CUDA_API void fake_cuda_set_cost(const char* function, int64_t ns);
/* Step of event timestamps (default 32 ns) and how long a record occupies its stream (default 0). */
FAKE_CUDA_API void fake_cuda_set_event_tick(int64_t ns);
FAKE_CUDA_API void fake_cuda_set_event_record_duration(int64_t ns);
/* A call that waits for a gate that is never opened gives CUDA_ERROR_LAUNCH_TIMEOUT after this real time
 * (30000). */
FAKE_CUDA_API void fake_cuda_set_block_limit_ms(int64_t real_ms);

/* Failures. The nth call from now on (1 is the next) returns the error and does nothing; nth 0 is every call;
 * function "*" is any function. */
FAKE_CUDA_API void fake_cuda_fail(const char* function, int64_t nth_call, int error);
FAKE_CUDA_API void fake_cuda_forget_faults(void);
/* Every call from now on returns the error, as after an illegal address. 0 heals. */
FAKE_CUDA_API void fake_cuda_poison(int error);

/* What happened. */
FAKE_CUDA_API int64_t fake_cuda_call_count(const char* function); /* "*": all */
FAKE_CUDA_API void fake_cuda_reset_call_counts(void);
FAKE_CUDA_API int64_t fake_cuda_outstanding(const char* kind); /* -1: no such kind */
/* Uses of what had been given back, since the last reset; and their texts, NULL beyond the last. */
FAKE_CUDA_API int64_t fake_cuda_misuses(void);
FAKE_CUDA_API const char* fake_cuda_misuse(int64_t number);
/* Resets of persisting cache lines while the context had work to do. The driver's documentation has them take
 * effect on function return, so that work may make lines persist again before the next sample. */
FAKE_CUDA_API int64_t fake_cuda_resets_while_busy(void);
/* Device work that has not ended at the present now; stream 0 counts every stream of every device. */
FAKE_CUDA_API int64_t fake_cuda_pending_work(uint64_t stream);
/* Calls that are blocked in a wait at this moment, over all threads. */
FAKE_CUDA_API int64_t fake_cuda_blocked_calls(void);

/* What a profiler sees; libfairlap_fake_cupti.so listens here. Called with the fake's lock held. */
typedef struct fake_cuda_activity {
  int kind; /* CUPTI's activity kinds: 1 memcpy, 2 memset, 10 kernel, 22 peer memcpy */
  int64_t start_ns;
  int64_t end_ns;
  uint32_t device;
  uint32_t context;
  uint32_t stream;
  uint32_t correlation;
  uint32_t graph;      /* 0 outside graphs */
  uint64_t graph_node; /* 0 outside graphs */
  const char* name;    /* kernels; lives as long as the library */
  uint64_t bytes;      /* copies and fills */
  int copy_kind;       /* CUpti_ActivityMemcpyKind */
  uint32_t fill_value;
} fake_cuda_activity;
typedef void (*fake_cuda_activity_listener)(const fake_cuda_activity* activity, void* user);
FAKE_CUDA_API void fake_cuda_listen(fake_cuda_activity_listener listener, void* user);
/* A launch as it begins, whatever becomes of it: of a kernel, or of a graph. Called with the fake's lock
 * held. */
typedef struct fake_cuda_launch {
  const char* function; /* as CUPTI names it */
  uint64_t stream;      /* as the caller named it */
  uint64_t context;     /* the calling thread's */
} fake_cuda_launch;
typedef void (*fake_cuda_launch_listener)(const fake_cuda_launch* launch, void* user);
FAKE_CUDA_API void fake_cuda_listen_to_launches(fake_cuda_launch_listener listener, void* user);
/* What fake_cuda_kernel is called by, as CUPTI names it ("cuLaunchKernel"). */
FAKE_CUDA_API void fake_cuda_set_launch_function(const char* function);
/* The ids that CUPTI gives. 0 when there is no such stream or context. */
FAKE_CUDA_API uint32_t fake_cuda_stream_id(uint64_t context, uint64_t stream, int per_thread);
FAKE_CUDA_API uint32_t fake_cuda_context_id(uint64_t context);
FAKE_CUDA_API int fake_cuda_context_device(uint64_t context); /* -1: not alive */

#ifdef __cplusplus
}
#endif

#endif
