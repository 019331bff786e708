#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "telemetry/sampling/source.hpp"

namespace fairlap::telemetry {

// Opens a counter of the kernel's for the whole of one core; gives its file, or minus the error.
using OpenPerfCounter = std::function<int(std::uint32_t type, std::uint64_t config, int core)>;
int open_perf_counter(std::uint32_t type, std::uint64_t config, int core);

// Energy counters of processor packages through perf_event_open ("power/energy-pkg"), for machines where
// powercap is closed. Type, events, scale and unit come from sysfs. One field for each event and
// package; events that overlap, such as a package and its cores, must not be added up.
class PerfEnergy final : public Source {
 public:
  explicit PerfEnergy(const std::string& root = "", const OpenPerfCounter& open = open_perf_counter);
  ~PerfEnergy() override;

  // Absent for the reason given, without having looked.
  struct NotNeeded {
    std::string reason;
  };
  explicit PerfEnergy(const NotNeeded& because);

  void read(Lane lane, Recorder& recorder) noexcept override;

 private:
  struct Counter {
    int file;
    double joules_per_count;
  };
  void find_event(const std::string& folder, const std::string& event, const OpenPerfCounter& open);

  std::vector<Counter> counters_;  // by field; one that could not be opened has the file -1
};

}  // namespace fairlap::telemetry
