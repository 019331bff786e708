// Native work of known length, and a count of allocations. Preloaded, it counts every malloc of the process.
#include <stdint.h>
#include <stdlib.h>
#include <time.h>

static uint64_t now_ns(void) {
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC_RAW, &t);
  return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

static void spin(uint64_t length_ns) {
  const uint64_t until = now_ns() + length_ns;
  while (now_ns() < until) {
  }
}

void empty(void) {}
void spin_1us(void) { spin(1000); }
void spin_10us(void) { spin(10000); }

static int by_value(const void* a, const void* b) {
  const double difference = *(const double*)a - *(const double*)b;
  return (difference > 0) - (difference < 0);
}

// How long a spin really lasts: one pair of stamps around twenty of them, the median of a hundred such.
double true_length_ns(uint64_t length_ns) {
  double each[100];
  for (int batch = 0; batch < 100; ++batch) {
    const uint64_t begin = now_ns();
    for (int i = 0; i < 20; ++i) spin(length_ns);
    each[batch] = (double)(now_ns() - begin) / 20.0;
  }
  qsort(each, 100, sizeof each[0], by_value);
  return (each[49] + each[50]) / 2;
}

static uint64_t allocations;

extern void* __libc_malloc(size_t);
extern void* __libc_calloc(size_t, size_t);
extern void* __libc_realloc(void*, size_t);

void* malloc(size_t size) {
  __atomic_fetch_add(&allocations, 1, __ATOMIC_RELAXED);
  return __libc_malloc(size);
}
void* calloc(size_t count, size_t size) {
  __atomic_fetch_add(&allocations, 1, __ATOMIC_RELAXED);
  return __libc_calloc(count, size);
}
void* realloc(void* old, size_t size) {
  __atomic_fetch_add(&allocations, 1, __ATOMIC_RELAXED);
  return __libc_realloc(old, size);
}

// Timed work that notes how many allocations the process had made at its first and at its latest call.
struct noted {
  uint64_t calls;
  uint64_t first;
  uint64_t latest;
};
void note_allocations(struct noted* noted) {
  noted->latest = __atomic_load_n(&allocations, __ATOMIC_RELAXED);
  if (noted->calls++ == 0) noted->first = noted->latest;
}
