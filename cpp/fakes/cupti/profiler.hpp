#pragma once

#include <cstdint>
#include <deque>
#include <mutex>
#include <set>

#include "cuda/activity/cupti_abi.hpp"
#include "fakes/fake_cuda.h"
#include "fakes/fake_cupti.h"
#include "fakes/fault_book.hpp"

namespace fairlap::fakes {

std::int64_t wall_clock_ns();

// What the fake profiler knows. Its lock is taken inside the fake driver's, so nothing here calls the
// driver while holding it.
struct Profiler {
  std::mutex mutex;
  FaultBook faults;
  std::uint32_t version = 130001;
  bool held_by_another = false;
  bool subscribed = false;
  cuda::CUpti_CallbackFunc on_call = nullptr;
  void* on_call_user = nullptr;
  bool driver_calls = false;  // the subscriber is called at every call of the driver that launches
  std::set<int> enabled;
  std::int64_t epoch_ns = wall_clock_ns();  // at the virtual clock's 0
  std::int64_t records_late_by_ns = 0;
  bool counts_cycles = false;  // a client has registered a clock that is not the wall clock in nanoseconds
  cuda::CUpti_BuffersCallbackRequestFunc request = nullptr;
  cuda::CUpti_BuffersCallbackCompleteFunc complete = nullptr;
  std::deque<fake_cuda_activity> records;
  std::int64_t to_drop = 0;
  std::int64_t spoil_in = 0;  // records of kernels from now; 0: none
  fake_cupti_spoiling spoiling = FAKE_CUPTI_NO_TIMES;
  std::size_t dropped = 0;
  std::int64_t buffers_out = 0;
};

Profiler& profiler();

// The driver calls it when work has ended.
void collect(const fake_cuda_activity* activity, void* user);

// The driver calls it when something is launched.
void announce(const fake_cuda_launch* launch, void* user);

// Hands all collected records to the client.
void deliver(Profiler& p);

// Bytes that a record of this kind takes, by version; 0 for kinds that are not recorded.
std::size_t record_bytes(std::uint32_t version, int kind);
// A virtual time as CUPTI gives it: converted when it is delivered, by the clock that is registered then.
std::uint64_t stamp(const Profiler& p, std::int64_t time_ns);
// Writes the record into zeroed memory of record_bytes.
void write_record(const Profiler& p, const fake_cuda_activity& activity, std::uint8_t* out);
// As a record is that a forced flush delivers before it is complete.
void spoil_record(fake_cupti_spoiling spoiling, std::uint8_t* record);

}  // namespace fairlap::fakes
