#pragma once

#include "telemetry/files/kept_file.hpp"
#include "telemetry/sampling/source.hpp"

namespace fairlap::telemetry {

// Time that the hypervisor gave to others, summed over cores, from /proc/stat.
class Steal final : public Source {
 public:
  explicit Steal(const std::string& root = "");
  void read(Lane lane, Recorder& recorder) noexcept override;

 private:
  KeptFile stat_;
  double seconds_per_tick_;
};

}  // namespace fairlap::telemetry
