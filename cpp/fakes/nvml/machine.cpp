#include "fakes/nvml/machine.hpp"

#include <chrono>

#include "fakes/fake_nvml.h"

namespace fairlap::fakes {

Machine& machine() {
  // Never destroyed: a sampler's thread may still call while the process ends.
  static Machine* const the_machine = [] {
    auto* fresh = new Machine;
    reset(*fresh);
    return fresh;
  }();
  return *the_machine;
}

void reset(Machine& m) {
  m.faults = FaultBook{};
  m.field_faults = FaultBook{};
  m.boards.assign(1, Board(0));
  m.has_mig = false;
  m.driver_version = "580.00.00";
  m.cuda_version = 13000;
  m.inits = 0;
  m.real_clock = false;
  m.epoch_us = FAKE_NVML_EPOCH_US;
  m.test_now_ns = 0;
  m.costs_ns.clear();
}

std::int64_t Machine::now_ns() const {
  if (!real_clock) return test_now_ns;
  const auto now = std::chrono::steady_clock::now().time_since_epoch();
  return std::chrono::duration_cast<std::chrono::nanoseconds>(now).count() - real_start_ns;
}

std::int64_t Machine::cost_ns(const std::string& function) const {
  for (const std::string& name : {function, std::string("*")}) {
    const auto found = costs_ns.find(name);
    if (found != costs_ns.end()) return found->second;
  }
  return 0;
}

}  // namespace fairlap::fakes
