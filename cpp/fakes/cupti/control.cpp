#include <string>
#include <thread>

#include "fakes/cupti/profiler.hpp"

// fake_cupti.h: what a test can set and ask.
namespace fairlap::fakes {

#pragma GCC visibility push(default)
extern "C" {

void fake_cupti_reset(void) {
  fake_cuda_listen(nullptr, nullptr);
  fake_cuda_listen_to_launches(nullptr, nullptr);
  Profiler& p = profiler();
  const std::lock_guard lock(p.mutex);
  p.faults = FaultBook{};
  p.version = 130001;
  p.held_by_another = false;
  p.subscribed = false;
  p.driver_calls = false;
  p.enabled.clear();
  p.epoch_ns = wall_clock_ns();
  p.records_late_by_ns = 0;
  p.counts_cycles = false;
  p.request = nullptr;
  p.complete = nullptr;
  p.records.clear();
  p.to_drop = 0;
  p.spoil_in = 0;
  p.dropped = 0;
}

int64_t fake_cupti_epoch_ns(void) {
  const std::lock_guard lock(profiler().mutex);
  return profiler().epoch_ns;
}

void fake_cupti_set_version(uint32_t version) {
  const std::lock_guard lock(profiler().mutex);
  profiler().version = version;
}

void fake_cupti_set_records_late_by(int64_t ns) {
  const std::lock_guard lock(profiler().mutex);
  profiler().records_late_by_ns = ns;
}

void fake_cupti_set_held_by_another(int held) {
  const std::lock_guard lock(profiler().mutex);
  profiler().held_by_another = held != 0;
}

void fake_cupti_drop_records(int64_t n) {
  const std::lock_guard lock(profiler().mutex);
  profiler().to_drop = n;
}

void fake_cupti_spoil_record(int64_t nth, fake_cupti_spoiling spoiling) {
  const std::lock_guard lock(profiler().mutex);
  profiler().spoil_in = nth;
  profiler().spoiling = spoiling;
}

void fake_cupti_deliver(void) {
  std::thread([] { deliver(profiler()); }).join();
}

void fake_cupti_fail(const char* function, int64_t nth_call, int error) {
  const std::lock_guard lock(profiler().mutex);
  profiler().faults.fail(function, nth_call, error);
}

void fake_cupti_forget_faults(void) {
  const std::lock_guard lock(profiler().mutex);
  profiler().faults.forget_faults();
}

int64_t fake_cupti_call_count(const char* function) {
  const std::lock_guard lock(profiler().mutex);
  return profiler().faults.calls(function);
}

int64_t fake_cupti_outstanding(const char* kind) {
  Profiler& p = profiler();
  const std::lock_guard lock(p.mutex);
  const std::string name = kind == nullptr ? "" : kind;
  if (name == "subscribers") return p.subscribed ? 1 : 0;
  if (name == "enabled_kinds") return static_cast<std::int64_t>(p.enabled.size());
  if (name == "held_records") return static_cast<std::int64_t>(p.records.size());
  if (name == "buffers") return p.buffers_out;
  return -1;
}

}  // extern "C"
#pragma GCC visibility pop
}  // namespace fairlap::fakes
