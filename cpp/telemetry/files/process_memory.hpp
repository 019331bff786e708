#pragma once

#include <array>
#include <memory>

#include "telemetry/files/kept_file.hpp"
#include "telemetry/sampling/source.hpp"

namespace fairlap::telemetry {

// Resident memory of this process, and of all its descendants together, split into anonymous, file-backed and
// shared. Pinned memory is counted as shared. `root` is prepended to /proc.
class ProcessMemory final : public Source {
 public:
  explicit ProcessMemory(const std::string& root = "");
  void read(Lane lane, Recorder& recorder) noexcept override;

 private:
  static constexpr std::array<const char*, 4> kKeys{"VmRSS:", "RssAnon:", "RssFile:", "RssShmem:"};

  void read_pages(Recorder& recorder) noexcept;
  void read_kinds(Recorder& recorder) noexcept;
  void read_descendants(Recorder& recorder) noexcept;

  std::string proc_;
  KeptFile statm_;
  KeptFile status_;
  double bytes_per_page_;
};

}  // namespace fairlap::telemetry
