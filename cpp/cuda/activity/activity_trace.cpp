#include "cuda/activity/activity_trace.hpp"

#include <array>
#include <ctime>

#include "cuda/driver/current_context.hpp"

namespace fairlap::cuda {
namespace {

constexpr std::array<CUpti_ActivityKind, 4> kKinds = {CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL,
                                                      CUPTI_ACTIVITY_KIND_MEMCPY, CUPTI_ACTIVITY_KIND_MEMSET,
                                                      CUPTI_ACTIVITY_KIND_MEMCPY2};

// We subscribe to be the only one, and enable no callback.
void on_callback(void*, int, std::uint32_t, const void*) {}

std::uint64_t read_ns(clockid_t clock) noexcept {
  std::timespec now{};
  clock_gettime(clock, &now);
  return static_cast<std::uint64_t>(now.tv_sec) * 1'000'000'000 + static_cast<std::uint64_t>(now.tv_nsec);
}

std::uint64_t wall_clock_ns() { return read_ns(CLOCK_REALTIME); }

#ifdef __linux__
constexpr clockid_t kClockUnderWsl = CLOCK_MONOTONIC_RAW;
#else
constexpr clockid_t kClockUnderWsl = CLOCK_MONOTONIC;
#endif

// Cycle counters, which others may have registered, are never this near to a system clock.
constexpr std::uint64_t kNearNs = 1'000'000'000;

bool is_near(std::uint64_t a, std::uint64_t b) { return (a > b ? a - b : b - a) < kNearNs; }

}  // namespace

void ActivityTrace::start() {
  cupti_.check("cuptiSubscribe", cupti_.cuptiSubscribe(&subscriber_, &on_callback, nullptr));
  try {
    auto* const context = stream_.context().handle();
    const CurrentContext current(stream_.driver(), context);
    std::uint32_t context_id = 0;
    cupti_.check("cuptiGetContextId", cupti_.cuptiGetContextId(context, &context_id));
    if (stream_.known()) {
      const bool per_thread = reinterpret_cast<std::uintptr_t>(stream_.handle()) == STREAM_PER_THREAD;
      std::uint32_t id = 0;
      cupti_.check("cuptiGetStreamIdEx",
                   cupti_.cuptiGetStreamIdEx(context, stream_.handle(),
                                             per_thread ? std::uint8_t{1} : std::uint8_t{0}, &id));
      stream_id_ = id;
    }
    ActivityStore::of_this_process().begin(cupti_, context_id);
    enable();
  } catch (...) {
    stop();
    throw;
  }
}

// PyTorch's profiler registers a callback that counts cycles, and leaves it behind. Registering ours always
// would be simpler, but from CUDA 12.6 Update 2 to 13.0 a callback costs kernels their times (pytorch issue
// 192021).
void ActivityTrace::count_in_nanoseconds() const {
  const std::uint64_t now = now_ns();
  if (is_near(now, wall_clock_ns()) || is_near(now, read_ns(kClockUnderWsl))) return;
  const CUptiResult result = cupti_.cuptiActivityRegisterTimestampCallback(&wall_clock_ns);
  if (result != CUPTI_SUCCESS) {
    throw Unavailable(
        "activity records are not in nanoseconds: another profiler in this process, such as PyTorch's, set "
        "their clock, and CUPTI keeps it (" +
        std::to_string(result) + "); time in a process without it");
  }
}

void ActivityTrace::enable() {
  count_in_nanoseconds();
  cupti_.check("cuptiActivityRegisterCallbacks",
               cupti_.cuptiActivityRegisterCallbacks(&ActivityStore::on_buffer_wanted,
                                                     &ActivityStore::on_buffer_full));
  for (const CUpti_ActivityKind kind : kKinds) {
    cupti_.check("cuptiActivityEnable", cupti_.cuptiActivityEnable(kind));
    ++enabled_;
  }
}

void ActivityTrace::stop() noexcept {
  for (std::size_t kind = 0; kind < enabled_; ++kind)
    static_cast<void>(cupti_.cuptiActivityDisable(kKinds[kind]));
  if (enabled_ > 0) static_cast<void>(cupti_.cuptiActivityFlushAll(CUPTI_ACTIVITY_FLAG_FLUSH_FORCED));
  enabled_ = 0;
  if (subscriber_ == nullptr) return;
  ActivityStore::of_this_process().end();
  static_cast<void>(cupti_.cuptiUnsubscribe(subscriber_));
  subscriber_ = nullptr;
}

std::uint64_t ActivityTrace::now_ns() const {
  std::uint64_t now = 0;
  cupti_.check("cuptiGetTimestamp", cupti_.cuptiGetTimestamp(&now));
  return now;
}

ActivityTrace::Taken ActivityTrace::take() {
  cupti_.check("cuptiActivityFlushAll", cupti_.cuptiActivityFlushAll(0));
  // Records that are complete may share a buffer with one that is not, which the first flush leaves behind.
  cupti_.check("cuptiActivityFlushAll", cupti_.cuptiActivityFlushAll(CUPTI_ACTIVITY_FLAG_FLUSH_FORCED));
  Taken taken;
  taken.activities = ActivityStore::of_this_process().take(taken.losses);
  std::size_t dropped = 0;
  cupti_.check("cuptiActivityGetNumDroppedRecords",
               cupti_.cuptiActivityGetNumDroppedRecords(nullptr, 0, &dropped));
  if (dropped > 0) taken.losses.push_back({.records = dropped});  // which they are is not known
  return taken;
}

}  // namespace fairlap::cuda
