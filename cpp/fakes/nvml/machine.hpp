#pragma once

#include <cstdint>
#include <map>
#include <mutex>
#include <string>
#include <vector>

#include "fakes/fault_book.hpp"
#include "fakes/nvml/board.hpp"

namespace fairlap::fakes {

// Everything the fake NVML knows. All of it is guarded by the mutex.
struct Machine {
  std::mutex mutex;
  FaultBook faults;
  FaultBook field_faults;
  std::vector<Board> boards;
  bool has_mig = false;
  std::string driver_version;
  int cuda_version = 0;
  std::int64_t inits = 0;
  bool real_clock = false;
  std::int64_t test_now_ns = 0;
  std::int64_t real_start_ns = 0;  // of the steady clock, when it was switched to
  std::int64_t epoch_us = 0;       // what time zero is in microseconds since 1970
  std::map<std::string, std::int64_t> costs_ns;

  [[nodiscard]] std::int64_t now_ns() const;
  [[nodiscard]] std::int64_t cost_ns(const std::string& function) const;
};

Machine& machine();
void reset(Machine& m);

}  // namespace fairlap::fakes
