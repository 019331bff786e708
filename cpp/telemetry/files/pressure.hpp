#pragma once

#include <vector>

#include "telemetry/files/kept_file.hpp"
#include "telemetry/sampling/source.hpp"

namespace fairlap::telemetry {

// Time in which tasks of this machine waited for a processor, memory or a disk (PSI, /proc/pressure).
// "some": at least one waited; "full": all did.
class Pressure final : public Source {
 public:
  explicit Pressure(const std::string& root = "");
  void read(Lane lane, Recorder& recorder) noexcept override;

 private:
  std::vector<KeptFile> files_;
};

}  // namespace fairlap::telemetry
