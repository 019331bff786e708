#pragma once

#include <vector>

#include "telemetry/energy/kept_file.hpp"
#include "telemetry/sampling/source.hpp"

namespace fairlap::telemetry {

// Energy counters of processor packages, their cores and their memory, as /sys/class/powercap has them (RAPL
// of Intel's and AMD's processors). A zone inside another is part of it: they must not be added up.
class Powercap final : public Source {
 public:
  explicit Powercap(const std::string& root = "");
  void read(Lane lane, Recorder& recorder) noexcept override;

 private:
  std::vector<KeptFile> files_;  // by field
};

}  // namespace fairlap::telemetry
