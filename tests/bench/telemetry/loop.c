/* The loop that is disturbed, and a thread that only wakes: what no sampler can be cheaper than. */
#include <pthread.h>
#include <stdatomic.h>
#include <stdint.h>
#include <time.h>

static int64_t now_ns(void) {
  struct timespec time;
  clock_gettime(CLOCK_MONOTONIC, &time);
  return (int64_t)time.tv_sec * 1000000000 + time.tv_nsec;
}

static void spin(int64_t turns) {
  for (int64_t turn = 0; turn < turns; ++turn) __asm__ volatile("" : "+r"(turn));
}

/* How long each of `count` pieces of the same work took. */
void run_loop(double* lengths_ns, int64_t count, int64_t turns) {
  for (int64_t i = 0; i < count; ++i) {
    const int64_t begin_ns = now_ns();
    spin(turns);
    lengths_ns[i] = (double)(now_ns() - begin_ns);
  }
}

static atomic_int ending;
static pthread_t waker;
static int64_t period_ns;

static void* wake(void* unused) {
  for (int64_t next_ns = now_ns(); !atomic_load(&ending);) {
    next_ns += period_ns;
    const struct timespec until = {next_ns / 1000000000, next_ns % 1000000000};
    clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &until, 0);
  }
  return unused;
}

int start_waker(int64_t every_ns) {
  period_ns = every_ns;
  atomic_store(&ending, 0);
  return pthread_create(&waker, 0, wake, 0);
}

int stop_waker(void) {
  atomic_store(&ending, 1);
  return pthread_join(waker, 0);
}
