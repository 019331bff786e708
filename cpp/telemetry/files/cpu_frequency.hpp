#pragma once

#include <vector>

#include "telemetry/files/kept_file.hpp"
#include "telemetry/sampling/source.hpp"

namespace fairlap::telemetry {

// The clock of the processor's cores: mean, lowest and highest. On a machine with many cores a few, evenly
// spread, represent all, since asking one core may interrupt it.
class CpuFrequency final : public Source {
 public:
  static constexpr std::size_t kMostCores = 16;

  explicit CpuFrequency(const std::string& root = "");
  void read(Lane lane, Recorder& recorder) noexcept override;

  [[nodiscard]] std::size_t cores_read() const noexcept { return files_.size(); }

 private:
  std::vector<KeptFile> files_;
};

}  // namespace fairlap::telemetry
