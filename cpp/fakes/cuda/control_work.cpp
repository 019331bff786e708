#include "fakes/cuda/blocking.hpp"
#include "fakes/cuda/enqueue.hpp"
#include "fakes/cuda/entry.hpp"
#include "fakes/cuda/launch.hpp"
#include "fakes/cuda/lookup.hpp"
#include "fakes/cuda/transfers.hpp"

// fake_cuda.h: a framework's work, the clock, failures, and what happened.
namespace fairlap::fakes {
namespace {

int enqueue_for_framework(std::uint64_t stream, Task task, bool is_launch) {
  World& w = world();
  Lock lock = locked();
  w.timeline.observe();
  w.timeline.advance_by(cost_ns(w.costs_ns, "cuLaunchKernel"));
  StreamPtr found;
  if (const CUresult error = find_stream(w, pointer<CUstream>(stream), found); error != CUDA_SUCCESS)
    return error;
  if (const CUresult error = enqueue(w, *found, std::move(task)); error != CUDA_SUCCESS) return error;
  const bool waits = is_launch && w.launches_block && !found->capture;
  return waits ? wait_for(w, lock, {found->last()}) : CUDA_SUCCESS;
}

}  // namespace

#pragma GCC visibility push(default)
extern "C" {

int fake_cuda_kernel(uint64_t stream, const char* name, int64_t duration_ns) {
  const char* kept = nullptr;
  {
    const Lock lock = locked();
    kept = intern(name == nullptr ? "" : name);
    announce_launch(world(), world().launch_function, stream);
  }
  return enqueue_for_framework(stream, kernel_task(kept, duration_ns), true);
}

int fake_cuda_copy(uint64_t stream, int copy_kind, uint64_t bytes, int64_t duration_ns) {
  Task task;
  task.duration_ns = duration_ns;
  task.activity = copy_activity(copy_kind, bytes);
  return enqueue_for_framework(stream, std::move(task), false);
}

void fake_cuda_set_kernel_duration(const char* name, int64_t duration_ns) {
  const Lock lock = locked();
  world().kernel_durations_ns[name] = duration_ns;
}

void fake_cuda_set_instruction_rate(const char* operation, double per_second) {
  const Lock lock = locked();
  world().instruction_rates[operation] = per_second;
}

void fake_cuda_set_wrong_sums(const char* operation) {
  const Lock lock = locked();
  world().operations_with_wrong_sums.insert(operation);
}

void fake_cuda_set_bandwidths(double cache_bytes_per_second, double memory_bytes_per_second) {
  const Lock lock = locked();
  world().cache_bytes_per_s = cache_bytes_per_second;
  world().memory_bytes_per_s = memory_bytes_per_second;
}

void fake_cuda_set_link(double to_device_bytes_per_second, double from_device_bytes_per_second,
                        int64_t latency_ns) {
  const Lock lock = locked();
  World& w = world();
  w.to_device_bytes_per_s = to_device_bytes_per_second;
  w.from_device_bytes_per_s = from_device_bytes_per_second;
  w.copy_latency_ns = latency_ns;
}

void fake_cuda_set_peer_link(int from, int to, double bytes_per_second) {
  const Lock lock = locked();
  world().peer_links[{from, to}] = bytes_per_second;
}

int64_t fake_cuda_now_ns(void) {
  const Lock lock = locked();
  return world().timeline.now_ns();
}

void fake_cuda_advance_host(int64_t ns) {
  const Lock lock = locked();
  world().timeline.advance_by(ns);
}

void fake_cuda_set_cost(const char* function, int64_t ns) {
  const Lock lock = locked();
  auto& costs = world().costs_ns;
  if (std::string(function) == "*") costs.clear();
  costs[function] = ns;
}

void fake_cuda_set_event_tick(int64_t ns) {
  const Lock lock = locked();
  world().event_tick_ns = ns;
}

void fake_cuda_set_event_record_duration(int64_t ns) {
  const Lock lock = locked();
  world().event_record_ns = ns;
}

void fake_cuda_set_block_limit_ms(int64_t real_ms) {
  const Lock lock = locked();
  world().block_limit_ms = real_ms;
}

void fake_cuda_fail(const char* function, int64_t nth_call, int error) {
  const Lock lock = locked();
  world().faults.fail(function, nth_call, error);
}

void fake_cuda_forget_faults(void) {
  const Lock lock = locked();
  world().faults.forget_faults();
}

void fake_cuda_poison(int error) {
  const Lock lock = locked();
  world().poison = error;
}

int64_t fake_cuda_call_count(const char* function) {
  const Lock lock = locked();
  return world().faults.calls(function);
}

void fake_cuda_reset_call_counts(void) {
  const Lock lock = locked();
  world().faults.reset_counts();
}

int64_t fake_cuda_pending_work(uint64_t stream) {
  const Lock lock = locked();
  World& w = world();
  std::int64_t pending = 0;
  for (const auto& [unused, context] : w.contexts) {
    for (const StreamPtr& each : streams_of(*context)) {
      if (stream == 0 || each->handle == stream)
        pending += static_cast<std::int64_t>(pending_count(w, *each));
    }
  }
  return pending;
}

int64_t fake_cuda_resets_while_busy(void) {
  const Lock lock = locked();
  return world().resets_while_busy;
}

int64_t fake_cuda_blocked_calls(void) {
  const Lock lock = locked();
  return world().blocked_calls;
}

void fake_cuda_listen_to_launches(fake_cuda_launch_listener listener, void* user) {
  const Lock lock = locked();
  world().launch_listener = listener;
  world().launch_listener_user = user;
}

void fake_cuda_set_launch_function(const char* function) {
  const Lock lock = locked();
  world().launch_function = intern(function);
}

void fake_cuda_listen(fake_cuda_activity_listener listener, void* user) {
  const Lock lock = locked();
  world().listener = listener;
  world().listener_user = user;
}

}  // extern "C"
#pragma GCC visibility pop
}  // namespace fairlap::fakes
