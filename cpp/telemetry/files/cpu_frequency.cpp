#include "telemetry/files/cpu_frequency.hpp"

#include <algorithm>
#include <cerrno>
#include <filesystem>
#include <limits>
#include <system_error>

namespace fairlap::telemetry {
namespace {

constexpr double kMegahertzPerKilohertz = 1e-3;

// Files of all cores that report their clock, in the order of their numbers.
std::vector<std::string> frequency_files(const std::string& folder) {
  std::vector<std::pair<double, std::string>> found;
  std::error_code unreadable;
  for (const auto& entry : std::filesystem::directory_iterator(folder, unreadable)) {
    const std::string name = entry.path().filename().string();
    double number = 0.0;
    if (!name.starts_with("cpu") || !leading_number(std::string_view(name).substr(3), number)) continue;
    const std::string file = entry.path().string() + "/cpufreq/scaling_cur_freq";
    std::error_code missing;
    if (std::filesystem::exists(file, missing)) found.emplace_back(number, file);
  }
  std::sort(found.begin(), found.end());
  std::vector<std::string> files;
  files.reserve(found.size());
  for (auto& [number, file] : found) files.push_back(std::move(file));
  return files;
}

}  // namespace

CpuFrequency::CpuFrequency(const std::string& root) : Source("cpu_frequency") {
  const std::string folder = root + "/sys/devices/system/cpu";
  const std::vector<std::string> all = frequency_files(folder);
  const std::size_t count = std::min(all.size(), kMostCores);
  std::string reason = "no core has cpufreq under " + folder +
                       ": the kernel does not report the clock here, as in most virtual machines";
  for (std::size_t i = 0; i < count; ++i) {
    KeptFile file(all[i * all.size() / count]);
    if (file.error() != 0)
      reason = file.reason();
    else
      files_.push_back(std::move(file));
  }
  if (!files_.empty()) reason.clear();
  for (const char* name : {"mean_mhz", "lowest_mhz", "highest_mhz"}) {
    add({.name = name, .lane = Lane::rare, .absent_because = reason});
  }
  conclude();
}

void CpuFrequency::read(Lane lane, Recorder& recorder) noexcept {
  if (lane != Lane::rare || !present()) return;
  double sum = 0.0;
  double lowest = std::numeric_limits<double>::infinity();
  double highest = 0.0;
  int reported = 0;
  int error = ENODATA;
  const Moment when = recorder.timed([&] {
    for (KeptFile& file : files_) {  // a core may be switched off meanwhile; the others still report
      double kilohertz = 0.0;
      if (!leading_number(file.read(), kilohertz)) {
        if (file.error() != 0) error = file.error();
        continue;
      }
      const double megahertz = kilohertz * kMegahertzPerKilohertz;
      sum += megahertz;
      lowest = std::min(lowest, megahertz);
      highest = std::max(highest, megahertz);
      ++reported;
    }
  });
  if (reported == 0) {
    for (std::uint32_t i = 0; i < fields().size(); ++i) recorder.put_failed(when, i, error);
    return;
  }
  recorder.put(when, 0, sum / reported);
  recorder.put(when, 1, lowest);
  recorder.put(when, 2, highest);
}

}  // namespace fairlap::telemetry
